"""One evolved graph from several models, none of which was trained on its node.

Nodes are dealt into K folds; K models are trained, each without the labels of its own
fold. A training node's neighbours come from the model of its fold. Any other node was
in nobody's training, so its neighbours may come from all models, each a share of the k.
"""

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import Split
from ecg_gnn.embed.folds import assign_folds
from ecg_gnn.evolve import EvolvedGraph, join_rows, share_rows
from ecg_gnn.evolve.knn import num_others
from ecg_gnn.system.seeds import derive_seed


def leave_out(split: Split, config: RunConfig) -> tuple[Tensor, list[Split]]:
    """The fold of every node, and for each fold the split without its labels."""
    num_folds, seed = config.embed.cross_fit, derive_seed(config.seed, split.index)
    folds = assign_folds(split.train_mask, num_folds, seed)
    return folds, [
        replace(split, train_mask=split.train_mask & (folds != fold))
        for fold in range(num_folds)
    ]


def one_model(config: RunConfig) -> RunConfig:
    """The same settings without folds."""
    embed = replace(config.embed, cross_fit=0, cross_fit_models="own")
    return replace(config, embed=embed)


def searches(config: RunConfig, num_nodes: int) -> list[RunConfig]:
    """Settings of the searches in every model's space: whole rows, then shares of rows.

    Shares have no self-loops: a node has one, whoever finds its neighbours.
    """
    alone = one_model(config)
    shares = [
        replace(alone, evolve=replace(alone.evolve, k=size, self_loops="exclude"))
        for size in _sizes(config, num_nodes)
    ]
    return [alone, *shares]


def join_models(
    found: Sequence[Sequence[EvolvedGraph]],
    folds: Tensor,
    split: Split,
    config: RunConfig,
) -> EvolvedGraph:
    """One graph of what all models found.

    Where K does not divide the k, some models give one neighbour more than others; a
    node's own model is the first of these, so every row has as many edges.

    Args:
        found: For each model the graphs of its ``searches``.
        folds: The fold of every node. ``[N]``
        split: Which nodes train.
        config: The settings.
    """
    own = join_rows([graphs[0] for graphs in found], folds)
    sizes = _sizes(config, folds.numel())
    if not sizes:
        return own
    trains_none = ~split.train_mask
    smaller, rest = divmod(_num_others(config, folds.numel()), len(found))
    shares = []
    for place, (_, *graphs) in enumerate(found):
        turn = (place - folds) % len(found)
        for size, graph in zip(sizes, graphs, strict=True):
            wanted = turn < rest if size > smaller else turn >= rest
            shares.append((graph, trains_none & wanted))
    return share_rows(own, shares, trains_none)


def _sizes(config: RunConfig, num_nodes: int) -> list[int]:
    """How many of a row's neighbours one model finds: larger shares, and smaller ones.

    Empty where rows are not shared out.
    """
    if config.embed.cross_fit_models == "own":
        return []
    smaller, rest = divmod(_num_others(config, num_nodes), config.embed.cross_fit)
    return [smaller + 1] * (rest > 0) + [smaller] * (smaller > 0)


def _num_others(config: RunConfig, num_nodes: int) -> int:
    return num_others(known(config.evolve.k), num_nodes, config.evolve.self_loops)
