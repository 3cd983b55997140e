"""The t-SNE pair: from a record's settings, the same again, labels as they are."""

import builtins

import numpy as np
import pytest

from ecg_gnn.data import load_dataset
from ecg_gnn.study import run_study
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn_lab.figures import tsne
from ecg_gnn_lab.figures.tsne import draw_tsne, project
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
        found = project(store, embedding="mlp", num_nodes=40)
        again = project(store, dataset=BOARD, embedding="mlp", num_nodes=40)
    assert found.before.shape == found.after.shape == (40, 2)
    assert (found.embedding, found.k) == ("mlp", 3)
    assert not np.allclose(found.before, found.after)
    np.testing.assert_array_equal(found.after, again.after)
    assert set(found.labels) <= set(load_dataset(BOARD).y.tolist())
    draw_tsne(found, tmp_path / "f.svg")
    assert f"unit {found.unit}<" in (tmp_path / "f.svg").read_text()
    assert "evolved graph (mlp, k = 3)" in (tmp_path / "f.svg").read_text()


def test_what_is_not_there_is_said(path):
    with Store.open(path) as store:
        with pytest.raises(InputError, match=r"no record of embedding 'bgrl'; it has"):
            project(store, embedding="bgrl")
        with pytest.raises(InputError, match="on 'tolokers'; it has"):
            project(store, embedding="mlp", dataset="tolokers")


def test_another_graph_of_the_same_name_is_refused(path, monkeypatch):
    other = load_dataset(f"{BOARD.partition(':')[0]}:rows=5,cols=5")
    monkeypatch.setattr(tsne, "load_dataset", lambda *_, **__: other)
    with Store.open(path) as store, pytest.raises(InputError, match="has changed"):
        project(store, embedding="mlp")


def test_several_datasets_must_be_told_apart(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for name in ("minesweeper", "tolokers"):
        made.add([0.5], embedding="mlp", dataset=dataset_info(name))
    made.writer.close()
    with (
        Store.open(tmp_path / "s.sqlite") as store,
        pytest.raises(InputError, match="'dataset' must be one of"),
    ):
        project(store)


def test_without_opentsne_one_line_names_the_extra(path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "openTSNE":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with (
        Store.open(path) as store,
        pytest.raises(MissingExtraError, match=r"ecg-gnn\[plot\]"),
    ):
        project(store)
