"""Curves over the share of labels, from records of which some are missing."""

import pytest

from ecg_gnn.study.store import Store
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
    add(made, 0.1, {None: 0.0, "mlp": 0.02})
    made.add([0.8, 0.8, None], embedding="identity", label_rate=0.1)  # not finished
    made.add([0.6, 0.7, 0.8], model="sage", embedding="random", label_rate=0.5)
    made.add([0.6, 0.7, 0.8], model="sage")
    made.writer.close()
    return tmp_path / "s.sqlite"


def test_points_are_what_was_run_to_the_end(script, records):
    with Store.open(records) as store:
        panels = script("label_rates").panels_of(store)
    gcn, sage = (panels["minesweeper", model] for model in ("gcn", "sage"))
    found = {(point.variant, point.rate) for point in gcn}
    whole = {(name, 0.05) for name in ("baseline", "ecg", "identity", "embedding")}
    assert found == whole | {("baseline", 0.1), ("ecg", 0.1)}
    (plain,) = [point for point in gcn if point[:2] == ("baseline", 0.05)]
    assert plain.mean == pytest.approx(100 * (0.7 + 0.72 + 0.73) / 3)
    # Without a rate half of the nodes train, as in the official splits.
    assert {(p.variant, p.rate) for p in sage} == {("baseline", 0.5), ("random", 0.5)}


def test_the_title_counts_whole_comparisons(script, records, tmp_path):
    script("label_rates").draw_label_rates(tmp_path / "f.svg", "these", records)
    drawn = (tmp_path / "f.svg").read_text(encoding="utf-8")
    assert "<dc:source>these</dc:source>" in drawn
    assert "in 1 of 1 comparisons" in drawn
