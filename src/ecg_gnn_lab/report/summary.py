"""Where ECG helps, by how much, and whether it is more than identity: in words."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.tables.document import Row, signed_text

SURE = 0.05
"""Holm-corrected p below which a difference counts as more than chance."""
_MOST_DATASETS = 3
"""That are named in one sentence."""


@dataclass(frozen=True)
class Answer:
    """One question with its answer: a number to see, and sentences to read."""

    question: str
    figure: str
    text: str


@dataclass(frozen=True)
class Verdict:
    """What the paired tests say of one dataset and model."""

    kind: str
    """One of :data:`VERDICTS`"""
    text: str


VERDICTS = {
    "edges": "above baseline and identity",
    "path": "above baseline, not shown to be above identity",
    "beaten": "above baseline, but identity is better",
    "alone": "above baseline, no identity control",
    "open": "too close to call",
    "worse": "below baseline",
}


def verdict(row: Row) -> Verdict:
    """Judge the chosen ECG cell of one dataset and model."""
    if _sign(row, "baseline") < 0:
        return _verdict("worse")
    if _sign(row, "baseline") == 0:
        return _verdict("open")
    if row["minus_identity"] is None:
        return _verdict("alone")
    kinds = {1: "edges", 0: "path", -1: "beaten"}
    return _verdict(kinds[_sign(row, "identity")])


def _verdict(kind: str) -> Verdict:
    return Verdict(kind, VERDICTS[kind])


def lede(rows: Sequence[Row]) -> str:
    """The one sentence for those who read no further."""
    compared = _with(rows, "baseline")
    if not compared:
        return (
            "No ECG model stands beside its plain model here, so whether ECG helps "
            "cannot be said from these records."
        )
    above = [row for row in compared if _sign(row, "baseline") > 0]
    if not above:
        return (
            "ECG is above its plain model by more than chance in none of "
            f"{_many(len(compared))}."
        )
    gains = [row["minus_baseline"] for row in above]
    more = sum(_sign(row, "identity") > 0 for row in above)
    controlled = len(_with(above, "identity"))
    less = sum(_sign(row, "identity") < 0 for row in above)
    tail = f"in {_of(more, controlled)} of these it is also above identity"
    if less:
        tail += f", in {_of(less, controlled)} of them identity is better"
    if not controlled:
        tail = "whether that is more than identity was not measured"
    return (
        f"ECG is above its plain model by more than chance in {len(above)} of "
        f"{_many(len(compared))}, by {_span(gains)} points; {tail}."
    )


def answers(rows: Sequence[Row], results: Sequence[Row]) -> list[Answer]:
    """The questions that a reader comes with.

    Args:
        rows: The chosen ECG row of every dataset and model.
        results: All rows of the results table, for what the paper has.
    """
    found = [_where(rows), _how_much(rows), _more_than_identity(rows), _paper(results)]
    return [answer for answer in found if answer is not None]


def _where(rows: Sequence[Row]) -> Answer | None:
    compared = _with(rows, "baseline")
    if not compared:
        return None
    above, close, below = _sorted_out(compared, "baseline")
    text = (
        f"Against the same model without an evolved graph: above in {len(above)}, "
        f"below in {len(below)}, too close to call in {len(close)} of "
        f"{_many(len(compared))}."
    )
    if above:
        text += f" Above: {_names(above)}."
    if below:
        text += f" Below: {_names(below)}."
    return Answer("Where does ECG help?", f"{len(above)} of {len(compared)}", text)


def _how_much(rows: Sequence[Row]) -> Answer | None:
    compared = sorted(_with(rows, "baseline"), key=lambda row: row["minus_baseline"])
    if not compared:
        return None
    low, high = compared[0], compared[-1]
    median = statistics.median(row["minus_baseline"] for row in compared)
    text = f"{_told(high, 'baseline')}."
    if len(compared) > 1:
        text = (
            f"The median difference from the plain model, in points. From "
            f"{_told(low, 'baseline')} to {_told(high, 'baseline')}."
        )
    return Answer("By how much?", signed_text(median), text)


def _more_than_identity(rows: Sequence[Row]) -> Answer:
    question = "Is it more than identity?"
    compared = _with(rows, "identity")
    if not compared:
        text = "No identity control has been run beside an ECG model here."
        return Answer(question, "not measured", text)
    above, close, below = _sorted_out(compared, "identity")
    text = (
        "Identity is the same network with self-loops for evolved edges. Against it, "
        f"ECG is above in {len(above)}, below in {len(below)}, too close to call in "
        f"{len(close)}."
    )
    if above:
        text += f" Above: {_names(above)}."
    if below:
        text += f" Below: {_names(below)}."
    gains = [row for row in compared if _sign(row, "baseline") > 0]
    if gains:
        same = sum(_sign(row, "identity") > 0 for row in gains)
        text += (
            f" Of {len(gains)} gains over the plain model, {same or 'none'} can be put "
            "down to evolved edges."
        )
    return Answer(question, f"{len(above)} of {len(compared)}", text)


def _paper(results: Sequence[Row]) -> Answer | None:
    # Models that the paper only quotes were trained by other code, with its faults.
    own = [row for row in results if row["model"] in numbers.MODELS]
    rows = [row for row in own if row["paper_difference"] is not None]
    if not rows:
        return None
    near = [row for row in rows if abs(row["paper_difference"]) <= 1]
    far = max(rows, key=lambda row: abs(row["paper_difference"]))
    text = (
        f"Means within one point of the paper's own. Furthest: {_name(far)}, "
        f"{far['label']}, {signed_text(far['paper_difference'])}."
    )
    return Answer("Does it agree with the paper?", f"{len(near)} of {len(rows)}", text)


def _with(rows: Sequence[Row], other: str) -> list[Row]:
    return [row for row in rows if row[f"minus_{other}"] is not None]


def _sign(row: Row, other: str) -> int:
    """+1 or −1 where a difference is more than chance, else 0."""
    p, mean = row[f"minus_{other}_p_holm"], row[f"minus_{other}"]
    if p is None or p >= SURE or not mean:
        return 0
    return 1 if mean > 0 else -1


def _sorted_out(
    rows: Sequence[Row], other: str
) -> tuple[list[Row], list[Row], list[Row]]:
    kinds = [[row for row in rows if _sign(row, other) == s] for s in (1, 0, -1)]
    return kinds[0], kinds[1], kinds[2]


def _told(row: Row, other: str) -> str:
    return f"{signed_text(row[f'minus_{other}'])} ({_name(row)})"


def _name(row: Row) -> str:
    return f"{row['model']} on {row['dataset']}"


def _names(rows: Sequence[Row]) -> str:
    """Models by dataset: all of them, as long as the sentence can be read."""
    models: dict[str, list[str]] = {}
    for row in rows:
        models.setdefault(row["dataset"], []).append(row["model"])
    told = [f"{_listed(found)} on {name}" for name, found in models.items()]
    rest = sum(map(len, list(models.values())[_MOST_DATASETS:]))
    return "; ".join(told[:_MOST_DATASETS]) + (f" and {rest} more" if rest else "")


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _span(values: Sequence[float]) -> str:
    low, high = signed_text(min(values)), signed_text(max(values))
    return low if low == high else f"{low} to {high}"


def _many(count: int) -> str:
    return "one comparison" if count == 1 else f"{count} comparisons"


def _of(count: int, total: int) -> str:
    return "none" if not count else "all" if count == total else f"{count}"
