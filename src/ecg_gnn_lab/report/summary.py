"""Where ECG helps, by how much, and whether it is more than identity: in words."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from ecg_gnn.study.verdict import VERDICTS as VERDICTS
from ecg_gnn.study.verdict import judge
from ecg_gnn_lab import published
from ecg_gnn_lab.tables.document import Row, signed_text
from ecg_gnn_lab.tables.scores import compared_with, surely

_MOST_DATASETS = 3  # named in one sentence


class Answer(NamedTuple):
    """One question with its answer: a number to see, and sentences to read."""

    question: str
    figure: str
    text: str


def verdict(row: Row) -> str:
    """Judge the chosen ECG cell of one dataset and model: a key of VERDICTS."""
    rivals = {"baseline", *compared_with([row])}
    return judge({other: surely(row, other) for other in rivals})


def lede(rows: Sequence[Row]) -> str:
    """The summary in one sentence."""
    compared = _measured(rows, "baseline")
    if not compared:
        return (
            "These records have no ECG model together with its plain model, so they "
            "cannot tell whether ECG helps."
        )
    above, comparisons = _by_sign(compared, "baseline")[0], _comparisons(len(compared))
    sure = "ECG is above its plain model by more than chance"
    if not above:
        return f"{sure} in none of {comparisons}."
    controlled = _measured(above, "identity")
    more, _, less = _by_sign(controlled, "identity")
    tail = "whether that is more than identity was not measured"
    if controlled:
        tail = f"in {_share(more, controlled)} of these it is also above identity"
    if less:
        tail += f", in {_share(less, controlled)} of them identity is better"
    if more:
        tail += f"; {_credited(more)}"
    low, high = (signed_text(f(r["minus_baseline"] for r in above)) for f in (min, max))
    gains = low if low == high else f"{low} to {high}"
    return f"{sure} in {len(above)} of {comparisons}, by {gains} points; {tail}."


def _credited(gains: Sequence[Row]) -> str:
    """How many gains over identity are the edges': those above the embedding, too."""
    asked = _measured(gains, "embedding")
    edges = _by_sign(asked, "embedding")[0]
    return (
        f"{len(asked) or 'none'} of these could be compared with the embedding as "
        f"features, so {len(edges) or 'none'} can be credited to the evolved edges"
    )


def answers(
    rows: Sequence[Row], results: Sequence[Row], embeddings: Sequence[Row] = ()
) -> list[Answer]:
    """The questions that a reader comes with.

    Answered from the chosen ECG row of every dataset and model; what the paper has is
    compared with all rows of the results table, and embeddings that were not chosen
    are said to be left out.
    """
    found = []
    if compared := _measured(rows, "baseline"):
        above, close, below = _by_sign(compared, "baseline")
        text = (
            f"Against the same model without an evolved graph: above in {len(above)}, "
            f"below in {len(below)}, too close to call in {len(close)} of "
            f"{_comparisons(len(compared))}.{_named(above, below)}"
        )
        if unequal := [row for row in compared if row.get("minus_baseline_unequal")]:
            text += f" Of unequal precision: {', '.join(map(_name, unequal))}."
        share = f"{len(above)} of {len(compared)}"
        found.append(Answer("Where does ECG help?", share, text))
        ordered = sorted(compared, key=lambda row: row["minus_baseline"])
        gains = [row["minus_baseline"] for row in ordered]
        ends = zip((gains[0], gains[-1]), (ordered[0], ordered[-1]), strict=True)
        low, high = (f"{signed_text(gain)} ({_name(row)})" for gain, row in ends)
        about = "The median difference from the plain model, in points. From"
        text = f"{about} {low} to {high}." if len(compared) > 1 else f"{high}."
        median = signed_text(statistics.median(gains))
        found.append(Answer("By how much?", median, text))
    return [*found, _more_than_identity(rows), *_paper(results, embeddings)]


def _more_than_identity(rows: Sequence[Row]) -> Answer:
    question = "Is it more than identity?"
    compared = _measured(rows, "identity")
    if not compared:
        text = "No identity control has been run beside an ECG model here."
        return Answer(question, "not measured", text)
    above, close, below = _by_sign(compared, "identity")
    text = (
        "Identity is the same network with self-loops for evolved edges. Against it, "
        f"ECG is above in {len(above)}, below in {len(below)}, too close to call in "
        f"{len(close)}.{_named(above, below)}"
    )
    if gains := _by_sign(compared, "baseline")[0]:
        both = [row for row in gains if surely(row, "identity") > 0]
        text += (
            f" Of {len(gains)} gains over the plain model, {len(both) or 'none'} are "
            f"also gains over identity; {_credited(both)}."
        )
    return Answer(question, f"{len(above)} of {len(compared)}", text)


def _paper(results: Sequence[Row], embeddings: Sequence[Row]) -> list[Answer]:
    rows = _in_paper(results)
    if not rows:
        return []
    near = [row for row in rows if abs(row["paper_difference"]) <= 1]
    far = max(rows, key=lambda row: abs(row["paper_difference"]))
    text = (
        "Means within one point of the paper's, for plain models and for the ECG "
        f"models that validation chose. Furthest: {_beside_paper(far)}."
    )
    others = [row for row in _in_paper(embeddings) if not row["best_on_validation"]]
    if others := [row for row in others if row["variant"] == "ecg"]:
        away = [row for row in others if abs(row["paper_difference"]) > 1]
        text += (
            f" Not counted: {len(others)} with embeddings that validation did not "
            f"choose; further away: {'; '.join(map(_beside_paper, away)) or 'none'}."
        )
    share = f"{len(near)} of {len(rows)}"
    return [Answer("Does it agree with the paper?", share, text)]


def _in_paper(rows: Sequence[Row]) -> list[Row]:
    # Models that the paper only quotes were trained by other code, with its faults.
    own = [row for row in rows if row["model"] in published.MODELS]
    return [row for row in own if row["paper_difference"] is not None]


def _beside_paper(row: Row) -> str:
    return f"{_name(row)}, {row['label']}, {signed_text(row['paper_difference'])}"


def _measured(rows: Sequence[Row], other: str) -> list[Row]:
    return [row for row in rows if row.get(f"minus_{other}") is not None]


def _by_sign(rows: Sequence[Row], other: str) -> list[list[Row]]:
    """Rows above another variant, too close to call, and below it."""
    return [[row for row in rows if surely(row, other) == s] for s in (1, 0, -1)]


def _name(row: Row) -> str:
    return f"{row['model']} on {row['dataset']}"


def _named(above: Sequence[Row], below: Sequence[Row]) -> str:
    """Models by dataset: all of them, as long as the sentence can be read."""
    text = ""
    for word, rows in {"Above": above, "Below": below}.items():
        models: dict[str, list[str]] = {}
        for row in rows:
            models.setdefault(row["dataset"], []).append(row["model"])
        parts = [
            f"{' and '.join(filter(None, (', '.join(first), last)))} on {dataset}"
            for dataset, (*first, last) in models.items()
        ]
        if parts:
            text += f" {word}: {'; '.join(parts[:_MOST_DATASETS])}"
            rest = sum(map(len, list(models.values())[_MOST_DATASETS:]))
            text += f" and {rest} more." if rest else "."
    return text


def _comparisons(count: int) -> str:
    return "one comparison" if count == 1 else f"{count} comparisons"


def _share(part: Sequence[Row], whole: Sequence[Row]) -> str:
    return "all" if len(part) == len(whole) else str(len(part) or "none")
