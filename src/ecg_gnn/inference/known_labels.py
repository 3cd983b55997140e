"""Predictions compared with labels that are known by now."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.inference.predictions import SET_SEPARATOR
from ecg_gnn.system.cells import text_of_cell
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import (
    Column,
    Table,
    decimal_mark,
    numeric_column,
    plain_numbers,
)

_FOR_CLASSES = ("accuracy", "f1-macro", "log-loss")
_FOR_TWO = ("roc-auc", "average-precision")


def score_table(
    predictions: Table,
    truth: Table,
    *,
    label: str | None = None,
    id_name: str | None = None,
) -> dict[str, Any]:
    """Scores of a table of predictions, over the nodes that both tables name.

    In the truth, the labels are in the column ``label``, or else in the last one; ids
    in ``id``, or else in the first.

    Examples:
        >>> columns = {"id": ["a", "b"], "predicted": ["1.5", "2.0"]}
        >>> known = Table("truth", {"id": ["a", "b"], "size": ["1.0", "2.0"]})
        >>> score_table(Table("predictions", columns), known)["mae"]
        0.25
    """
    names = list(truth.columns)
    id_name = id_name or ("id" if "id" in names else names[0])
    label = label or ("label" if "label" in names else names[-1])
    named = zip(truth.names(id_name, "nodes"), truth.texts(label, "label"), strict=True)
    known = {name: text for name, text in named if text is not None}
    ids = [text_of_cell(name) for name in predictions.names("id", "nodes")]
    predictions.column("predicted", "predictions")
    rows = [row for row, name in enumerate(ids) if name in known]
    if not rows:
        raise InputError(
            f"{truth.source}: must have the label of at least one predicted node "
            f"(got none of {len(ids)}, the first of them {ids[0]!r})"
        )
    labels = [known[ids[row]] for row in rows]
    shares = [name for name in predictions.columns if name.startswith("p_")]
    if shares:
        scores = _class_scores(predictions, rows, labels, shares)
    else:
        scores = _number_scores(predictions, rows, labels, truth.source)
    return {"nodes": len(rows), "unknown": len(ids) - len(rows)} | scores


def _class_scores(
    predictions: Table, rows: list[int], labels: list[str], shares: list[str]
) -> dict[str, Any]:
    classes = [name.removeprefix("p_") for name in shares]
    if strangers := sorted(set(labels) - set(classes)):
        raise InputError(
            f"{predictions.source}: known labels must be among the predicted "
            f"classes, {classes[:20]} (also found {strangers[:5]})"
        )
    said = np.column_stack([_numbers(predictions, name, rows) for name in shares])
    numbers = {name: place for place, name in enumerate(classes)}
    y = np.array([numbers[label] for label in labels])
    # What was said need not be the most probable class.
    told = predictions.texts("predicted", "predictions")
    cells = [text_of_cell(told[row] or "") for row in rows]
    answers = np.array([numbers.get(cell, len(classes)) for cell in cells])
    scores: dict[str, Any] = {}
    for name in _FOR_CLASSES + _FOR_TWO * (set(y) == {0, 1} and len(classes) == 2):
        judge, score = SCORES[name].of_classes, SCORES[name].judge
        scores[name.replace("-", "_")] = judge(y, answers) if judge else score(y, said)
    if "set" in predictions.columns:
        sets = predictions.texts("set", "sets")
        texts = [text_of_cell(sets[row] or "") for row in rows]
        members = [text.split(SET_SEPARATOR) if text else [] for text in texts]
        found = [label in each for label, each in zip(labels, members, strict=True)]
        scores["coverage"] = float(np.mean(found))
        scores["set_size"] = float(np.mean([len(each) for each in members]))
    return scores


def _number_scores(
    predictions: Table, rows: list[int], labels: list[str], source: str
) -> dict[str, Any]:
    texts: Column = [*labels]
    plain = plain_numbers(texts, decimal_mark(texts))
    y = numeric_column(Table(source, {"label": plain}), "label")
    said = _numbers(predictions, "predicted", rows)[:, None]
    scores: dict[str, Any] = {
        name.replace("-", "_"): one.judge(y, said)
        for name, one in SCORES.items()
        if one.for_numbers
    }
    if "low" in predictions.columns:
        low, high = (_numbers(predictions, end, rows) for end in ("low", "high"))
        scores["coverage"] = float(((low <= y) & (y <= high)).mean())
        scores["interval_width"] = float((high - low).mean())
    return scores


def _numbers(predictions: Table, name: str, rows: list[int]) -> NDArray[np.float64]:
    """What is said of nodes whose labels are known."""
    predictions.column(name, "predictions")
    values = numeric_column(predictions, name)[rows]
    if (missing := np.isnan(values)).any():
        raise InputError(
            f"{predictions.source}: {name!r} must be numbers (got none in row "
            f"{rows[int(np.argmax(missing))] + 1})"
        )
    return values
