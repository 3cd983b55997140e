"""What the counts beside the paper leave out is said."""

from ecg_gnn.study.store import Store
from small_studies import HandmadeStore


def test_a_cell_that_reached_its_bar_at_the_second_try(script, tmp_path):
    made = HandmadeStore(tmp_path / "s.sqlite")
    for loops, score in {"exclude": 0.905, "within_k": 0.915}.items():
        settings = {"evolve.self_loops": loops, "evolve.k": 3}
        made.add([score] * 3, embedding="bgrl", **settings)
    made.writer.close()
    with Store.open(tmp_path / "s.sqlite") as store:
        said = script("against_paper").paper_block(store).partition("\n")[0]
    assert "1 of 1 ECG models" in said
    assert "minesweeper, gcn, ECG (bgrl) (−1.85 with evolve.self_loops exclude)" in said


def test_less_than_a_standard_deviation_is_said(script):
    gap_text = script("quoting").gap_text
    assert gap_text(0.3, 0.2, 0.4) == "+0.30 (within one standard deviation)"
    assert gap_text(-0.5, 0.2, 0.4) == "−0.50"
    assert gap_text(None, 0.2, None) == "—"
