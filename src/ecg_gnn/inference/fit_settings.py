"""Settings of a model that is fitted to a graph nobody has tuned for."""

from typing import Any

import torch
from torch import Tensor

from ecg_gnn.config import KEPT_EMBEDDINGS, RunConfig, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.nn import model_names
from ecg_gnn.pipeline import resolve
from ecg_gnn.system.checks import check_choice

# Below it neighbours say little about a node or the opposite: SAGE keeps a node's own
# state apart from theirs, GCN mixes both.
_HETEROPHILOUS = 0.3
IMBALANCED = 2.0
"""Classes are weighed from this ratio of the largest to the smallest on."""


def fit_settings(dataset: GraphDataset, split: int = 0, **options: Any) -> RunConfig:
    """Settings by the names of their options, the others by the graph; resolved.

    Args:
        dataset: The graph.
        split: Which of its splits.
        options: As in ``RunConfig.of``; ``model`` is chosen by homophily if not given.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> graph = load_dataset("csbm:nodes=60")
        >>> fit_settings(graph, steps=100).evolve.k  # a tenth of the nodes
        6
    """
    if options.get("model") is None:
        options["model"] = model_by_homophily(dataset, dataset.split(split))
    asked = RunConfig.of(preset="auto", splits=(split,), **options)
    check_choice("embedding", asked.embed.names[0], [*KEPT_EMBEDDINGS, "identity"])
    # Others (linkx, say) have a weight per node, and none for a new one.
    check_choice("model", asked.model.name, model_names(asked.model.backbone))
    return resolve(asked, dataset)


def model_by_homophily(dataset: GraphDataset, split: Split) -> str:
    """``gcn`` where neighbours agree, else ``sage``; test classes are not looked at."""
    shown = split.train_mask | split.val_mask
    edges, y = dataset.labelled_part(dataset.edge_index, shown)
    measured = graph_statistics(edges, y, directed=dataset.directed)
    agree = measured["adjusted_homophily"] >= _HETEROPHILOUS  # NaN does not
    return "gcn" if agree else "sage"


def class_weights(
    dataset: GraphDataset, config: RunConfig, balance: bool | None
) -> Tensor | None:
    """Weights under which every class that occurs counts the same in total, ``[C]``.

    Args:
        dataset: The graph.
        config: Resolved settings of one split.
        balance: Whether to weigh; None is where classes differ much in size.
    """
    y = dataset.y[dataset.split(known(config.splits)[0]).train_mask]
    counts = y.bincount(minlength=dataset.num_classes)
    if balance is None:
        balance = bool(counts.max() >= IMBALANCED * counts[counts > 0].min())
    if not balance:
        return None
    weights: Tensor = y.numel() / (dataset.num_classes * counts.clamp_min(1))
    return weights.to(torch.float32)
