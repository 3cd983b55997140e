"""Scores with few labels, from records of which some are missing."""

import pytest

from ecg_gnn.study.store import Store
from ecg_gnn_lab.tables import StudyTables
from small_studies import HandmadeStore

GAINS = {None: 0.0, "mlp": 0.02, "identity": 0.01, "input:mlp,identity": 0.015}


def add(made, rate, gains, **cell):
    for embedding, gain in gains.items():
        tests = [0.7 + gain, 0.72 + gain, 0.73 + 1.001 * gain]
        made.add(tests, embedding=embedding, label_rate=rate, **cell)


@pytest.fixture
def records(tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    add(made, 0.05, GAINS)
    add(made, 0.1, {None: 0.03, "mlp": 0.02})
    made.add([0.8, 0.8, None], embedding="identity", label_rate=0.1)  # not finished
    made.add([0.6, 0.7, 0.8], model="sage")  # alone
    made.writer.close()
    return tmp_path / "s.sqlite"


def test_a_panel_compares_something(script, records):
    with Store.open(records) as store:
        rows = StudyTables(store)["results"].rows
        panels = script("label_rates").panels_of(rows)
    found = {panel[0]["dataset"]: [row["variant"] for row in panel] for panel in panels}
    assert found == {
        "minesweeper (10% labels)": ["baseline", "ecg", "identity"],
        "minesweeper (5% labels)": ["baseline", "ecg", "identity", "embedding"],
    }


def test_the_picture_counts_and_says_what_is_not_finished(script, records, tmp_path):
    script("label_rates").draw_label_rates(tmp_path / "f.svg", "these", records)
    drawn = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "<dc:source>these</dc:source>" in drawn
    assert "in 1 of 2 comparisons" in drawn
    assert "identity, 2 of 3 splits" in drawn
