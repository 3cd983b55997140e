"""Graph statistics as records keep them."""

import math
from collections.abc import Mapping, Sequence

from ecg_gnn.data import GraphDataset
from ecg_gnn.evolve import EvolvedGraph, graph_statistics

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
    return {
        key: None if math.isnan(value) else value for key, value in statistics.items()
    }


def of_input(dataset: GraphDataset) -> Statistics:
    """Everything that is measured of a dataset's own graph."""
    labelled = dataset.labelled_part(dataset.edge_index)
    return plain(graph_statistics(*labelled, directed=dataset.directed))


def of_evolved(graph: EvolvedGraph, dataset: GraphDataset) -> Statistics:
    """Everything that is measured of an evolved graph."""
    labelled = dataset.labelled_part(graph.edge_index)
    statistics = plain(graph_statistics(*labelled, directed=True))
    if graph.recall is not None:
        statistics[RECALL] = graph.recall
    return statistics


def mean(rows: Sequence[Statistics]) -> Statistics:
    """Mean of every statistic; undefined if it is so in any row."""
    means: Statistics = {}
    exact: Statistics = {RECALL: 1.0}  # an exact graph has all neighbours
    for key in dict.fromkeys(key for row in rows for key in row):
        values = [(exact | row)[key] for row in rows]
        defined = [value for value in values if value is not None]
        whole = len(defined) == len(values)
        means[key] = sum(defined) / len(defined) if whole else None
    return means
