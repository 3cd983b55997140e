"""A description of a graph in plain values, ready for JSON."""

from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ecg_gnn.data.dataset import GraphDataset


def describe(dataset: GraphDataset) -> dict[str, Any]:
    """Sizes, classes, splits and shape of one graph.

    A node's degree counts the edges at it, in either direction. Components are those
    of the graph with directions forgotten. ``duplicate_feature_rows`` counts the rows
    that repeat an earlier one.
    """
    # An undirected edge is stored both ways already.
    ends = dataset.edge_index if dataset.directed else dataset.edge_index[0]
    degree = torch.bincount(ends.flatten(), minlength=dataset.num_nodes)
    source, target = dataset.edge_index.numpy()
    entries = (np.ones(len(source), dtype=np.int8), (source, target))
    adjacency = coo_array(entries, shape=(dataset.num_nodes, dataset.num_nodes))
    num_components, _ = connected_components(adjacency.tocsr(), directed=False)
    rows = (dataset.x + 0.0).numpy()  # -0.0 becomes 0.0: equal numbers, equal bytes
    sizes = torch.stack([each.sum(1) for each in dataset.masks], dim=1).tolist()
    parts = ("train", "val", "test")
    return {
        "name": dataset.name,
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "features": dataset.num_features,
        "classes": dataset.num_classes,
        "class_counts": torch.bincount(dataset.y[dataset.y >= 0]).tolist(),
        "unlabelled_nodes": dataset.num_unlabelled,
        "metric": dataset.metric,
        "directed": dataset.directed,
        "splits": [dict(zip(parts, row, strict=True)) for row in sizes],
        "isolated_nodes": int((degree == 0).sum()),
        "connected_components": int(num_components),
        "degree": {
            "min": int(degree.min()),
            "median": float(np.median(degree.numpy())),
            "max": int(degree.max()),
        },
        "duplicate_feature_rows": len(rows) - len({row.tobytes() for row in rows}),
        "sha256": dataset.sha256,
        "note": dataset.note,
    }
