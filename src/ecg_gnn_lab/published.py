"""What is published: the paper's tables, other results, and what may stand beside ours.

Names are those of this package. A published number may stand beside a result of ours
only on the official graph; nothing is published on the substitute features of
``roman-empire-glove``.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.selection import Cell

DETAILED = "ECG paper, detailed table"
_RESULTS = "ECG paper, results table"
_QUOTED = "quoted in the ECG paper"
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


class Published(NamedTuple):
    """A result as its authors report it, in percent."""

    method: str
    mean: float
    std: float
    source: str
    unlike: str | None = None
    """How its protocol differs from ten official splits of the undirected graph"""
    model: str | None = None
    """Our name of the same model, if we have it"""


def results(dataset: str) -> list[Published]:
    """Everything known about a graph, best first."""
    found = []
    for method in read("published.json")["methods"]:
        if (score := method["scores"].get(dataset)) is not None:
            unlike = score.get("unlike", method.get("unlike"))
            numbers = method["name"], score["mean"], score["std"], method["source"]
            found.append(Published(*numbers, unlike, method.get("model")))
    return sorted(found, key=lambda each: -each.mean)


def best(dataset: str) -> list[Published]:
    """The highest result under the same protocol; several where they are equal."""
    alike = [each for each in results(dataset) if each.unlike is None]
    return [each for each in alike if each.mean == alike[0].mean]


def higher_elsewhere(dataset: str) -> list[Published]:
    """Results above the best one, from another protocol or an unchecked one."""
    bar = max((each.mean for each in best(dataset)), default=0.0)
    return [each for each in results(dataset) if each.mean > bar]


def is_official(name: str, sha256: str) -> bool:
    """Whether a graph is the one that the literature has numbers for.

    A user's file may have any name, and other splits make another benchmark; both have
    another checksum. The substitute is in the catalogue, but not official.
    """
    entry = CATALOGUE.get(name)
    return entry is not None and entry.kind == "official" and entry.sha256 == sha256


def on_official_graph(cell: Cell) -> bool:
    """Whether a cell is on the graph and the splits that the literature has."""
    key = cell.key
    own = not key.random_splits and not key.label_rate
    return own and is_official(key.dataset, key.dataset_sha256)


def in_paper(cell: Cell) -> bool:
    """Whether a cell could be one of the paper's: plain or ECG, with no option more."""
    key = cell.key
    plain = key.backbone == "benchmark" and not key.tags
    return plain and key.variant in ("baseline", "ecg") and on_official_graph(cell)


def paper_score(cell: Cell, *, in_detail: bool = False) -> Score | None:
    """What the paper's results table, or its detailed one, has of a cell."""
    if not in_paper(cell):
        return None
    key = cell.key
    if in_detail:
        return detailed(key.dataset, key.model, key.embedding)
    return headline(key.dataset, key.model, ecg=key.variant == "ecg")


def published_score(cell: Cell) -> Published | None:
    """What has been published on a cell's model: by the paper, else by its authors."""
    key = cell.key
    if (paper := paper_score(cell)) is not None:
        source = _QUOTED if key.model in SPECIALISED else _RESULTS
        return Published(key.model, *paper, source)
    if not on_official_graph(cell) or key.variant != "baseline" or key.tags:
        return None
    own = (each for each in results(key.dataset) if each.model == key.model_label)
    return next(own, None)


def published_values(published: Published | None, ours: float | None) -> dict[str, Any]:
    """A published number as part of a raw row, and how far ours is above it."""
    names = ("mean", "std", "source", "unlike")
    row = {f"published_{name}": getattr(published, name, None) for name in names}
    above = None if published is None or ours is None else ours - published.mean
    return row | {"published_difference": above}
