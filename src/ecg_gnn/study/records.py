"""The records of one run, and the statistics of its graphs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from ecg_gnn.data import GraphDataset
    from ecg_gnn.evolve import EvolvedGraph


@dataclass(frozen=True, kw_only=True)
class Record:
    """Raw numbers of one variant on one split; scores are shares, not percent."""

    id: str
    variant: str
    embedding: str | None
    model: str
    split: int
    seed: int
    best_step: int
    val: float
    test: float
    seconds: float
    peak_memory_mb: float | None
    evolved_statistics: list[dict[str, float | int | None]]
    losses: list[float | None]
    val_scores: list[float | None]
    test_scores: list[float | None]
    provenance: Mapping[str, Any] = field(default_factory=dict)


def is_pruned(provenance: Mapping[str, Any], finished: int) -> bool:
    """Whether a search pruned a configuration, of whose records ``finished`` exist."""
    pruned = provenance.get("search", {}).get("pruned")
    return pruned is not None and finished < int(pruned["of"])


Statistics = dict[str, float | int | None]
STATISTICS = {
    "num_edges": "edges",
    "edge_homophily": "h_edge",
    "node_homophily": "h_node",
    "class_homophily": "h_class",
    "adjusted_homophily": "h_adj",
    "label_informativeness": "LI",
}
"""What is measured of a graph, and its name in tables."""
RECALL = "knn_recall"
"""Only for approximate evolved graphs: the share of true neighbours that was found."""


def plain(statistics: Mapping[str, float | int]) -> Statistics:
    """JSON has no NaN: what is undefined is null."""
    return {key: None if math.isnan(v) else v for key, v in statistics.items()}


def of_input(dataset: "GraphDataset") -> Statistics:
    """Everything that is measured of a dataset's own graph."""
    return _measured(dataset, dataset.edge_index, dataset.directed)


def of_evolved(graph: "EvolvedGraph", dataset: "GraphDataset") -> Statistics:
    """Everything that is measured of an evolved graph."""
    recall = {} if graph.recall is None else {RECALL: graph.recall}
    return _measured(dataset, graph.edge_index, directed=True) | recall


def _measured(
    dataset: "GraphDataset", edge_index: "Tensor", directed: bool
) -> Statistics:
    from ecg_gnn.evolve import graph_statistics  # with torch, which no reader needs

    labelled = dataset.labelled_part(edge_index)
    return plain(graph_statistics(*labelled, directed=directed))


def mean(rows: Sequence[Statistics]) -> Statistics:
    """Mean of every statistic; undefined if it is so in any row."""
    means: Statistics = {}
    exact: Statistics = {RECALL: 1.0}  # an exact graph has all neighbours
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [(exact | row)[key] for row in rows]
        defined = [value for value in values if value is not None]
        means[key] = sum(defined) / len(values) if defined == values else None
    return means
