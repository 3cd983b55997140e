"""Which published number may stand beside a cell of ours, and where it is from."""

from typing import Any

from ecg_gnn.paper import numbers, published
from ecg_gnn.paper.published import Published
from ecg_gnn.study.paper_tables.evolved_graphs import is_official
from ecg_gnn.study.selection import Cell

DETAILED = "ECG paper, detailed table"
_RESULTS = "ECG paper, results table"
_QUOTED = "quoted in the ECG paper"


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


def published_score(cell: Cell) -> Published | None:
    """What has been published on a cell's model: by the paper, else by its authors."""
    key = cell.key
    if (paper := headline_score(cell)) is not None:
        source = _QUOTED if key.model in numbers.SPECIALISED else _RESULTS
        return Published(key.model, paper.mean, paper.std, source)
    if not on_official_graph(cell) or key.variant != "baseline" or key.tags:
        return None
    return published.of_model(key.dataset, key.model_label)


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
