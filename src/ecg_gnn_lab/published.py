"""Published results with their sources, and which may stand beside a cell of ours.

Nothing is published on the substitute features of ``roman-empire-glove``.
"""

from typing import Any, NamedTuple

from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.selection import Cell
from ecg_gnn_lab import paper_numbers

DETAILED = "ECG paper, detailed table"
_RESULTS = "ECG paper, results table"
_QUOTED = "quoted in the ECG paper"


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
    for method in paper_numbers.read("published.json")["methods"]:
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


def paper_score(cell: Cell, *, detailed: bool = False) -> paper_numbers.Score | None:
    """What the paper's results table, or its detailed one, has of a cell."""
    if not in_paper(cell):
        return None
    key = cell.key
    if detailed:
        return paper_numbers.detailed(key.dataset, key.model, key.embedding)
    return paper_numbers.headline(key.dataset, key.model, ecg=key.variant == "ecg")


def published_score(cell: Cell) -> Published | None:
    """What has been published on a cell's model: by the paper, else by its authors."""
    key = cell.key
    if (paper := paper_score(cell)) is not None:
        source = _QUOTED if key.model in paper_numbers.SPECIALISED else _RESULTS
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
