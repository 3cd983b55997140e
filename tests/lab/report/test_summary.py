"""Where does ECG help, by how much, is it more than identity: the words."""

import pytest

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
        "paper_difference": None,
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
        "+0.50 to +2.00 points; in 1 of these it is also above identity, in 1 of them "
        "identity is better; none of these could be compared with the embedding as "
        "features, so none can be credited to the evolved edges."
    )
    assert "in none of these it is also above identity, in all of them" in lede(
        [row(2.0, -1.0)]
    )
    assert lede([row(2.0, 0.1, p_identity=0.5)]).endswith("also above identity.")
    assert "in all of these it is also" in lede([row(2.0, 1.0)])
    assert "was not measured" in lede([row(2.0)])
    assert lede([row(1.0, 1.0, p=0.4)]).endswith("in none of one comparison.")
    assert "cannot tell" in lede([])
    assert "cannot tell" in lede([row(None, 1.0)])


def test_answers():
    rows = [row(2.0, 1.0), row(-1.0, -1.0, model="sage"), row(0.0, 0.5, p=1.0)]
    where, size, identity = answers(rows, rows)
    assert where.figure == "1 of 3"
    assert "above in 1, below in 1, too close to call in 1" in where.text
    assert "Above: gcn on d. Below: sage on d." in where.text
    assert size.figure == "+0.00"
    assert "−1.00 (sage on d) to +2.00 (gcn on d)" in size.text
    assert identity.figure == "2 of 3"
    assert (
        "Of 1 gains over the plain model, 1 are also gains over identity; none of these"
        in identity.text
    )


def test_what_was_not_measured_is_not_answered():
    (identity,) = answers([], [])
    assert identity.figure == "not measured"
    assert [a.figure for a in answers([row(1.0)], [])] == [
        "1 of 1",
        "+1.00",
        "not measured",
    ]


def test_agreement_with_the_paper():
    rows = [row(paper_difference=0.4), row(paper_difference=-1.6, label="baseline")]
    paper = answers([], rows)[-1]
    assert paper.figure == "1 of 2"
    assert "gcn on d, baseline, −1.60" in paper.text


def test_agreement_names_what_is_not_counted():
    chosen = row(paper_difference=0.4, variant="ecg", best_on_validation=True)
    other = chosen | {"paper_difference": -1.96, "label": "ECG (bgrl)"}
    other["best_on_validation"] = False
    text = answers([], [chosen], [chosen, other])[-1].text
    assert "Not counted: 1 with embeddings" in text
    assert "further away: gcn on d, ECG (bgrl), −1.96." in text


def test_gains_above_the_embedding_are_the_edges():
    gain = row(2.0, 1.0, minus_embedding=0.5, minus_embedding_p_holm=0.01)
    assert "1 of these could be compared" in lede([gain])
    assert lede([gain]).endswith("so 1 can be credited to the evolved edges.")


def test_long_lists_are_cut():
    rows = [row(2.0, model=f"m{i}", dataset=f"d{j}") for j in range(4) for i in (0, 1)]
    text = answers(rows, rows)[0].text
    assert "m0 and m1 on d0; m0 and m1 on d1; m0 and m1 on d2 and 2 more." in text
