"""Where ECG helps, by how much, and whether it is more than its controls: in words."""

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ecg_gnn.study.verdict import VERDICTS as VERDICTS
from ecg_gnn.study.verdict import judge
from ecg_gnn_lab.published import PAPER
from ecg_gnn_lab.tables.document import Row, signed_text
from ecg_gnn_lab.tables.scores import RIVALS, compared_with, surely

_ASKED = {
    "baseline": ("Where does ECG help?", "the same model without an evolved graph"),
    "identity": (
        "Is it more than identity?",
        "the same network with self-loops for evolved edges",
    ),
    "embedding": (
        "Is it more than the embedding?",
        "the same network with the embedding as features, and no new edge",
    ),
}


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
    """The summary in one sentence, or two."""
    compared = _measured(rows, "baseline")
    gains = [r["minus_baseline"] for r in compared if surely(r, "baseline") > 0]
    text = (
        "ECG is above its plain model by more than chance in "
        f"{len(gains) or 'none'} of {len(compared)} comparisons"
    )
    if not gains:
        return f"{text}."
    ends = dict.fromkeys(signed_text(gain) for gain in (min(gains), max(gains)))
    counts = Counter(map(verdict, compared))
    kinds = "; ".join(
        f"{counts[kind]} {said}"
        for kind, said in VERDICTS.items()
        if counts[kind] and kind not in ("open", "worse")
    )
    text += f", by {' to '.join(ends)} points ({kinds}). {counts['edges'] or 'None'}"
    return f"{text} of these gains can be credited to the evolved edges."


def answers(rows: Sequence[Row], every: Sequence[Row]) -> list[Answer]:
    """The questions that a reader comes with.

    Answered from the chosen ECG row of every dataset and model; what the paper has is
    compared with every row of the table of embeddings.
    """
    first, *more = (_against(rows, other) for other in RIVALS)
    compared, found = _measured(rows, "baseline"), [first]
    if compared:
        gains = sorted((row["minus_baseline"], _name(row)) for row in compared)
        ends = [f"{signed_text(gain)} ({name})" for gain, name in gains]
        median = signed_text(statistics.median(gain for gain, _ in gains))
        text = "The median difference from the plain model, in points. From "
        found.append(Answer("By how much?", median, f"{text}{ends[0]} to {ends[-1]}."))
    found += more
    # Models that the paper only quotes were trained by other code, with its faults.
    own = [row for row in every if row["published_source"] == PAPER]
    if own:
        near = [row for row in own if abs(row["published_difference"]) <= 1]
        far = max(own, key=lambda row: abs(row["published_difference"]))
        text = (
            "Means within one point of the paper's, for plain models and ECG with "
            f"every embedding. Furthest: {_name(far)}, {far['label']}, "
            f"{signed_text(far['published_difference'])}."
        )
        share = f"{len(near)} of {len(own)}"
        found.append(Answer("Does it agree with the paper?", share, text))
    return found


def _against(rows: Sequence[Row], other: str) -> Answer:
    question, about = _ASKED[other]
    signs = [surely(row, other) for row in _measured(rows, other)]
    if not signs:
        return Answer(question, "not measured", f"Nothing was compared with {about}.")
    return Answer(
        question,
        f"{signs.count(1)} of {len(signs)}",
        f"Against {about}, ECG is above in {signs.count(1)}, below in "
        f"{signs.count(-1)}, too close to call in {signs.count(0)}.",
    )


def _measured(rows: Sequence[Row], other: str) -> list[Row]:
    return [row for row in rows if row.get(f"minus_{other}") is not None]


def _name(row: Row) -> str:
    return f"{row['model']} on {row['dataset']}"
