"""Figures of a study: what they are drawn from, and the file they leave."""

import numpy as np
import pytest

from ecg_gnn.study.selection import Selection
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures import FIGURES, draw_figure
from ecg_gnn_lab.figures.training_curves import score_band
from ecg_gnn_lab.tables import StudyTables
from reported_studies import HOSTILE, fill
from small_studies import HandmadeStore, dataset_info

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = fill(tmp_path_factory.mktemp("store") / "s.sqlite")
    with Store.open(path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "form"), list(zip(FIGURES, STARTS, strict=True)), ids=FIGURES
)
def test_a_figure_is_the_same_again_in_any_format(store, tmp_path, name, form):
    first, second = tmp_path / f"a.{form}", tmp_path / "new" / f"b.{form}"
    draw_figure(name, StudyTables(store), first)
    draw_figure(name, StudyTables(store, "by-hand"), second)
    assert first.read_bytes().startswith(STARTS[form])
    assert first.read_bytes() == second.read_bytes()


def test_figures_say_what_they_show(store, tmp_path):
    texts = {}
    for name in FIGURES:
        draw_figure(name, StudyTables(store), tmp_path / "f.svg")
        texts[name] = (tmp_path / "f.svg").read_text()
    assert "gcn, ECG (mlp)" in texts["effects"]
    assert "− identity" in texts["effects"]
    assert "own-graph · sage" in texts["curves"]
    assert "adjusted" in texts["homophily"]


def test_a_figure_can_say_what_it_was_drawn_from(store, tmp_path):
    for name in FIGURES:
        draw_figure(
            name, StudyTables(store), tmp_path / f"{name}.svg", source="these records"
        )
        text = (tmp_path / f"{name}.svg").read_text()
        assert "<dc:source>these records</dc:source>" in text
    draw_figure(name, StudyTables(store), tmp_path / "f.pdf", source="these records")


def test_any_name_can_be_drawn(tmp_path):
    with Store.open(fill(tmp_path / "s.sqlite", hostile=True)) as store:
        for name in FIGURES:
            draw_figure(name, StudyTables(store), tmp_path / "f.svg")
            assert HOSTILE not in (tmp_path / "f.svg").read_text()


def test_mean_and_spread_over_splits(store):
    cell = Selection.of(store).cells[0]
    steps, mean, spread = score_band(store, cell)
    assert steps.tolist() == [1, 2]
    np.testing.assert_allclose(mean, [0.75, 1.0])
    np.testing.assert_allclose(spread, [0, 0], atol=1e-7)


def test_curves_are_of_models_with_evolved_graphs_and_their_own_rivals(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    gate = {"model.gate": "node"}
    made.add([0.5, 0.6])
    for embedding in ("mlp", "identity"):
        made.add([0.7, 0.8], embedding=embedding, **gate)
    made.add([0.1, 0.2], embedding="identity")
    made.add([0.5, 0.6], model="h2gcn")
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        draw_figure("curves", StudyTables(store), tmp_path / "f.svg")
    text = (tmp_path / "f.svg").read_text()
    assert ("· gcn" in text, "h2gcn" in text) == (True, False)
    assert text.count("identity, gated") == 1
    assert "identity</text>" not in text


def test_a_store_without_the_matter_is_refused(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        for name in FIGURES:
            with pytest.raises(InputError, match=f"for the figure '{name}'"):
                draw_figure(name, StudyTables(store), tmp_path / "f.png")
    assert not (tmp_path / "f.png").exists()


def test_one_split_and_no_identity_is_enough(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    made.add([0.5])
    made.add([0.6], embedding="mlp")
    made.add([0.6], embedding="mlp", dataset=dataset_info("without", "3" * 64))
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        for name in FIGURES:
            draw_figure(name, StudyTables(store), tmp_path / "f.png")
