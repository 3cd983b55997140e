"""A description of a graph in plain values, ready for JSON."""

from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from ecg_gnn.data.dataset import GraphDataset


def describe(dataset: GraphDataset) -> dict[str, Any]:
    """Sizes, classes, splits and shape of one graph.

    A node's degree counts the edges at it, in either direction. Components are those
    of the graph with directions forgotten. ``duplicate_feature_rows`` counts the rows
    that repeat an earlier one.
    """
    degree = _degree(dataset)
    masks = (dataset.train_masks, dataset.val_masks, dataset.test_masks)
    sizes = torch.stack([each.sum(1) for each in masks], dim=1).tolist()
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
        "connected_components": _num_components(dataset),
        "degree": {
            "min": int(degree.min()),
            "median": float(np.median(degree.numpy())),
            "max": int(degree.max()),
        },
        "duplicate_feature_rows": _num_duplicate_rows(dataset.x),
        "sha256": dataset.sha256,
        "note": dataset.note,
    }


def _degree(dataset: GraphDataset) -> Tensor:
    """Edges at each node, [N]; an undirected edge is stored both ways already."""
    source, target = dataset.edge_index
    degree = torch.bincount(source, minlength=dataset.num_nodes)
    if dataset.directed:
        degree = degree + torch.bincount(target, minlength=dataset.num_nodes)
    return degree


def _num_components(dataset: GraphDataset) -> int:
    """How many pieces the graph falls into."""
    source, target = dataset.edge_index.numpy()
    shape = (dataset.num_nodes, dataset.num_nodes)
    present = np.ones(len(source), dtype=np.int8)
    adjacency = coo_array((present, (source, target)), shape=shape).tocsr()
    count, _ = connected_components(adjacency, directed=False)
    return int(count)


def _num_duplicate_rows(x: Tensor) -> int:
    """Rows equal to an earlier one."""
    rows = (x + 0.0).numpy()  # -0.0 becomes 0.0: equal numbers, now equal bytes
    return len(rows) - len({row.tobytes() for row in rows})
