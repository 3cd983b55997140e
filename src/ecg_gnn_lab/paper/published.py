"""Published results with their sources, and which may stand beside a cell of ours.

Nothing is published on the substitute features of ``roman-empire-glove``.
"""

from typing import Any, NamedTuple

from ecg_gnn.study.selection import Cell
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.tables.evolved_graphs import is_official

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


def _methods() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = numbers.read("published.json")["methods"]
    return found


def num_splits() -> int:
    """Official splits of every graph; a result on fewer is marked."""
    return int(numbers.read("published.json")["splits"])


def results(dataset: str) -> list[Published]:
    """Everything known about a graph, best first."""
    found = [
        _published(method, method["scores"][dataset])
        for method in _methods()
        if dataset in method["scores"]
    ]
    return sorted(found, key=lambda each: -each.mean)


def _published(method: dict[str, Any], score: dict[str, Any]) -> Published:
    return Published(
        method=method["name"],
        mean=score["mean"],
        std=score["std"],
        source=method["source"],
        unlike=score.get("unlike", method.get("unlike")),
    )


def of_model(dataset: str, model: str) -> Published | None:
    """What the authors of one of our models report, by its name in our tables."""
    for method in _methods():
        if method.get("model") == model and dataset in method["scores"]:
            return _published(method, method["scores"][dataset])
    return None


def best(dataset: str) -> list[Published]:
    """The highest result under the same protocol; several where they are equal."""
    alike = [each for each in results(dataset) if each.unlike is None]
    return [each for each in alike if each.mean == alike[0].mean]


def higher_elsewhere(dataset: str) -> list[Published]:
    """Results above the best one, from another protocol or an unchecked one."""
    bar = max((each.mean for each in best(dataset)), default=0.0)
    return [each for each in results(dataset) if each.mean > bar]


def on_official_graph(cell: Cell) -> bool:
    """Whether a cell is on the graph and the splits that the literature has."""
    key = cell.key
    return is_official(key.dataset, key.dataset_sha256) and not key.random_splits


def official(cell: Cell) -> bool:
    """Whether a cell is on the paper's very graph, splits and backbone, as plain."""
    key = cell.key
    return on_official_graph(cell) and key.backbone == "benchmark" and not key.tags


def headline_score(cell: Cell) -> numbers.Score | None:
    """The paper's results table: a plain model, or the best of its ECG variants."""
    if not official(cell) or cell.key.variant not in ("baseline", "ecg"):
        return None
    ecg = cell.key.variant == "ecg"
    return numbers.headline(cell.key.dataset, cell.key.model, ecg=ecg)


def detailed_score(cell: Cell) -> numbers.Score | None:
    """The paper's detailed table: a plain model, or ECG from the cell's embedding."""
    if not official(cell) or cell.key.variant not in ("baseline", "ecg"):
        return None
    return numbers.detailed(cell.key.dataset, cell.key.model, cell.key.embedding)


def published_score(cell: Cell) -> Published | None:
    """What has been published on a cell's model: by the paper, else by its authors."""
    key = cell.key
    if (paper := headline_score(cell)) is not None:
        source = _QUOTED if key.model in numbers.SPECIALISED else _RESULTS
        return Published(key.model, paper.mean, paper.std, source)
    if not on_official_graph(cell) or key.variant != "baseline" or key.tags:
        return None
    return of_model(key.dataset, key.model_label)


def published_values(found: Published | None, ours: float | None) -> dict[str, Any]:
    """A published number as part of a raw row, and how far ours is above it."""
    if found is None:
        names = ("mean", "std", "source", "unlike", "difference")
        return {f"published_{name}": None for name in names}
    return {
        "published_mean": found.mean,
        "published_std": found.std,
        "published_source": found.source,
        "published_unlike": found.unlike,
        "published_difference": None if ours is None else ours - found.mean,
    }
