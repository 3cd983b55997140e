"""What was found in a graph on its way in, before anything is trained."""

import math
from collections.abc import Mapping
from typing import Any

from ecg_gnn.data import GraphDataset, describe
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.tabular.features import FeaturePipeline
from ecg_gnn.tabular.features.kinds import present_texts
from ecg_gnn.tabular.tables import Table


def describe_import(
    dataset: GraphDataset,
    classes: tuple[str, ...],
    features: FeaturePipeline,
    nodes: Table,
    repeats: Mapping[str, int],
) -> dict[str, Any]:
    """Sizes, classes, homophily, components, isolated nodes, imbalance, columns."""
    found = describe(dataset)
    counts = found["class_counts"]
    missing = {
        name: nodes.num_rows - len(present_texts(nodes.columns[name]))
        for name in features.columns
    }
    return {
        "nodes": found["nodes"],
        "edges": found["edges"],
        "directed": found["directed"],
        **repeats,
        "isolated_nodes": found["isolated_nodes"],
        "connected_components": found["connected_components"],
        "degree": found["degree"],
        "features": found["features"],
        "columns": features.kinds(),
        "missing_values": {name: count for name, count in missing.items() if count},
        "columns_left_out": dict(features.dropped),
        "duplicate_feature_rows": found["duplicate_feature_rows"],
        "classes": dict(zip(classes, counts, strict=True)),
        "unlabelled_nodes": found["unlabelled_nodes"],
        "imbalance": max(counts) / min(counts),
        "metric": found["metric"],
        "splits": len(found["splits"]),
        "first_split": found["splits"][0],
        "homophily": homophily(dataset),
    }


def homophily(dataset: GraphDataset) -> dict[str, float | int | None]:
    """All measures, over edges whose two ends have a class; null if undefined."""
    edges, y = dataset.labelled_part(dataset.edge_index)
    found = graph_statistics(edges, y, directed=dataset.directed)
    return {k: None if math.isnan(v) else v for k, v in found.items()}
