"""Single numbers of the paper's tables, by the names that this package uses.

Nothing here decides whether a number may stand beside a result of ours: callers must
make sure that the graph is the official one.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

DATASETS = ("roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions")
MODELS = ("resnet", "gcn", "sage", "gat-sep", "gt-sep")
SPECIALISED = (
    *("h2gcn", "cpgnn", "gpr-gnn", "fsgnn", "glognn", "fagcn", "gbk-gnn", "jacobiconv"),
)
"""Models of the results table that the paper takes from elsewhere, without ECG."""
STATISTICS_K = 3
"""Neighbours per node in the evolved graphs of the statistics table."""


class Score(NamedTuple):
    """Mean and standard deviation over the splits, in percent."""

    mean: float
    std: float


@cache
def read(name: str) -> Any:
    """One of the JSON files in the folder ``paper``."""
    text = files("ecg_gnn_lab").joinpath("paper", name).read_text(encoding="utf-8")
    return json.loads(text)


def headline(dataset: str, model: str, *, ecg: bool) -> Score | None:
    """The results table: a plain model, or the best of its ECG variants."""
    return _score("results", f"ecg {model}" if ecg else model, dataset)


def detailed(dataset: str, model: str, embedding: str | None) -> Score | None:
    """The detailed table: a plain model (None), or ECG from one embedding."""
    return _score("detailed", f"{model} {embedding or ''}".strip(), dataset)


def _score(table: str, row: str, dataset: str) -> Score | None:
    score = read("tables.json")[table].get(row, {}).get(dataset)
    return None if score is None else Score(**score)


def statistic(dataset: str, embedding: str | None, key: str) -> float | None:
    """The statistics table: of G (None), or of the MLP's or BGRL's graph at k = 3."""
    rows = read("tables.json")["statistics"].get(embedding or "G", {})
    value: float | None = rows.get(key, {}).get(dataset)
    return value


def best_hyperparameters(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best settings of a model, embedding included; what it lists."""
    rows = read("tables.json")["best_settings"].get(model, {})
    return {name: row.get(dataset) for name, row in rows.items()}


def count(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int]:
    """Wins, ties and losses as the paper counts them: means at their two decimals."""
    gaps = [round(ours, 2) - round(theirs, 2) for ours, theirs in pairs]
    return sum(g > 0 for g in gaps), gaps.count(0), sum(g < 0 for g in gaps)


def head_to_head() -> tuple[int, int, int]:
    """The paper's own count of ECG models against their plain models."""
    scores = [
        (headline(dataset, model, ecg=True), headline(dataset, model, ecg=False))
        for dataset in DATASETS
        for model in MODELS
    ]
    return count((ecg.mean, plain.mean) for ecg, plain in scores if ecg and plain)
