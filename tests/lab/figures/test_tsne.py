"""The t-SNE pair: from a record's settings, the same again, labels as they are."""

import pytest

from ecg_gnn.data import load_dataset
from ecg_gnn.study import run_study
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures import tsne
from ecg_gnn_lab.figures.tsne import draw_tsne
from small_runs import BOARD
from small_studies import HandmadeStore, dataset_info, small_recipe

SMALL = {"models": ["gcn"], "variants": ["mlp", "random"], "splits": [1]}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "s.sqlite"
    run_study(small_recipe(**SMALL), path)
    return path


def test_both_graphs_are_projected(path, tmp_path):
    with Store.open(path) as store:
        for name, dataset in (("a", None), ("b", BOARD)):
            file = tmp_path / f"{name}.svg"
            draw_tsne(store, file, dataset=dataset, embedding="mlp", num_nodes=40)
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text()
    assert "evolved graph (mlp, k = 3)" in drawn
    assert "<dc:source>unit " in drawn


def test_what_is_not_there_is_said(path, tmp_path):
    with Store.open(path) as store:
        with pytest.raises(InputError, match=r"'embedding' must be one of .*bgrl"):
            draw_tsne(store, tmp_path / "f.png", embedding="bgrl")
        with pytest.raises(InputError, match=r"'dataset' must be one of .*tolokers"):
            draw_tsne(store, tmp_path / "f.png", dataset="tolokers")


def test_another_graph_of_the_same_name_is_refused(path, tmp_path, monkeypatch):
    other = load_dataset(f"{BOARD.partition(':')[0]}:rows=5,cols=5")
    monkeypatch.setattr(tsne, "load_dataset", lambda *_, **__: other)
    with Store.open(path) as store, pytest.raises(InputError, match="has changed"):
        draw_tsne(store, tmp_path / "f.png")


def test_several_datasets_must_be_told_apart(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for name in ("minesweeper", "tolokers"):
        made.add([0.5], embedding="mlp", dataset=dataset_info(name))
    made.writer.close()
    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(InputError, match="'dataset' must be one of"),
    ):
        draw_tsne(store, tmp_path / "f.png")
