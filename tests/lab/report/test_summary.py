"""Where does ECG help, by how much, is it more than identity: the words."""

import pytest

from ecg_gnn_lab.published import PAPER
from ecg_gnn_lab.report.summary import answers, lede, verdict


def row(baseline=None, identity=None, *, p=0.001, p_identity=0.001, **other):
    return {
        "dataset": "d",
        "model": "gcn",
        "label": "ECG (mlp)",
        "minus_baseline": baseline,
        "minus_baseline_p_holm": None if baseline is None else p,
        "minus_identity": identity,
        "minus_identity_p_holm": None if identity is None else p_identity,
        "published_source": None,
    } | other


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (row(2.0, 1.0), "unasked"),
        (row(2.0, 1.0, minus_embedding=1.0, minus_embedding_p_holm=0.01), "edges"),
        (row(2.0, 1.0, minus_embedding=1.0, minus_embedding_p_holm=0.3), "vectors"),
        (row(2.0, 1.0, p_identity=0.3), "path"),
        (row(2.0, -1.0), "beaten"),
        (row(2.0), "alone"),
        (row(2.0, 1.0, p=0.05), "open"),
        (row(2.0, 1.0, p=None), "open"),
        (row(-2.0, 1.0), "worse"),
        (row(), "open"),
    ],
)
def test_verdicts(found, kind):
    assert verdict(found) == kind


def test_one_sentence_says_it():
    text = lede([row(2.0, 1.0), row(0.5, -1.0), row(0.1, 0.1, p=0.9)])
    assert text == (
        "ECG is above its plain model by more than chance in 2 of 3 comparisons, by "
        "+0.50 to +2.00 points (1 above baseline and identity, no embedding control; 1 "
        "above baseline, but identity is better). None of these gains can be credited "
        "to the evolved edges."
    )
    assert "no identity control" in lede([row(2.0)])
    assert lede([row(1.0, 1.0, p=0.4)]).endswith("in none of 1 comparisons.")
    for nothing in ([], [row(None, 1.0)]):
        assert lede(nothing).endswith("in none of 0 comparisons.")


def test_answers():
    rows = [row(2.0, 1.0), row(-1.0, -1.0, model="sage"), row(0.0, 0.5, p=1.0)]
    where, size, identity, embedding = answers(rows, rows)
    assert where.figure == "1 of 3"
    assert "above in 1, below in 1, too close to call in 1" in where.text
    assert size.figure == "+0.00"
    assert "−1.00 (sage on d) to +2.00 (gcn on d)" in size.text
    assert identity.figure == "2 of 3"
    assert embedding.figure == "not measured"


def test_what_was_not_measured_is_not_answered():
    assert {each.figure for each in answers([], [])} == {"not measured"}
    figures = [each.figure for each in answers([row(1.0)], [])]
    assert figures == ["1 of 1", "+1.00", "not measured", "not measured"]


def test_agreement_with_the_paper():
    near, far = {"published_difference": 0.4}, {"published_difference": -1.6}
    rows = [row(**near), row(**far, label="baseline"), row(**far)]
    for each in rows[:2]:
        each["published_source"] = PAPER
    paper = answers([], rows)[-1]
    assert paper.figure == "1 of 2"
    assert "gcn on d, baseline, −1.60" in paper.text


def test_gains_above_the_embedding_are_the_edges():
    gain = row(2.0, 1.0, minus_embedding=0.5, minus_embedding_p_holm=0.01)
    said = "1 of these gains can be credited to the evolved edges."
    assert lede([gain]).endswith(said)
