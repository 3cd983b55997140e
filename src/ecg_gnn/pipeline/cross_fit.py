"""Cross-fitting: a node's neighbours come from a model not trained on its label.

Nodes are dealt into K folds; K models are trained, each without the labels of its own
fold. A training node's neighbours come from the model of its fold. Any other node was
in no model's training, so its neighbours may come from all of them, each a share of k.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from scipy.linalg import orthogonal_procrustes
from torch import Tensor

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import Split
from ecg_gnn.evolve import EvolvedGraph, join_rows, share_rows
from ecg_gnn.evolve.knn import num_others
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed, generator_for


def assign_folds(train_mask: Tensor, num_folds: int, seed: int) -> Tensor:
    """The fold of every node, ``[N]``: training nodes dealt evenly, and the others.

    Nodes that do not train are dealt alike, so that all are searched for by models of
    the same kind: fitted on the same share of the training nodes, not on themselves.
    That is what makes the neighbourhoods of training and test nodes alike.

    No label is read, so folds are not stratified: were they, the fold of a node, and
    with it its neighbours, would depend on its own label.
    """
    generator = generator_for(seed, "folds")
    folds = torch.empty(train_mask.numel(), dtype=torch.long)
    for part in (train_mask, ~train_mask):
        nodes = part.cpu().nonzero()[:, 0]
        shuffled = nodes[torch.randperm(nodes.numel(), generator=generator)]
        folds[shuffled] = torch.arange(nodes.numel()) % num_folds
    return folds


def check_folds(train_mask: Tensor, num_folds: int) -> None:
    """Refuse more folds than there are training nodes."""
    num_train = int(train_mask.sum())
    if num_train < num_folds:
        raise InputError(
            f"'cross_fit' must be in [2, {num_train}], the number of training nodes "
            f"(got {num_folds})"
        )


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

    Shares have no self-loops: a node has one, whichever model finds its neighbours.
    """
    alone = one_model(config)
    evolve = replace(config.evolve, self_loops="exclude")
    sizes = _sizes(*_shares(config, num_nodes))
    return [alone, *(replace(alone, evolve=replace(evolve, k=k)) for k in sizes)]


def join_vectors(of_models: Sequence[Tensor], folds: Tensor) -> Tensor:
    """Each node's vector from the model of its fold, all in the first model's space.

    Spaces are turned onto each other by the rotation that fits all nodes best. It
    changes no cosine within a space, so no neighbour either.
    """
    first = of_models[0].double().cpu()
    joined = torch.empty_like(first)
    for fold, z in enumerate(of_models):
        own = z.double().cpu()
        turn, _ = orthogonal_procrustes(own.numpy(), first.numpy())
        mask = folds == fold
        joined[mask] = own[mask] @ torch.from_numpy(turn)
    return joined


def join_models(
    graphs_by_model: Sequence[Sequence[EvolvedGraph]],
    folds: Tensor,
    split: Split,
    config: RunConfig,
) -> EvolvedGraph:
    """One graph from the graphs that every model found in its ``searches``.

    Where K does not divide the k, some models give one neighbour more than others; a
    node's own model is the first of these, so every row has as many edges.
    """
    own = join_rows([graphs[0] for graphs in graphs_by_model], folds)
    smaller, rest = _shares(config, folds.numel())
    if smaller == rest == 0:
        return own
    trains_none, num_models = ~split.train_mask, len(graphs_by_model)
    sizes, shares = _sizes(smaller, rest), []
    for place, (_, *graphs) in enumerate(graphs_by_model):
        turn = (place - folds) % num_models
        for size, graph in zip(sizes, graphs, strict=True):
            wanted = turn < rest if size > smaller else turn >= rest
            shares.append((graph, trains_none & wanted))
    return share_rows(own, shares, trains_none)


def _shares(config: RunConfig, num_nodes: int) -> tuple[int, int]:
    """How many of a row's neighbours a model finds, and how many find one more.

    Zeros where rows are not shared out.
    """
    if config.embed.cross_fit_models == "own":
        return 0, 0
    k, loops = known(config.evolve.k), config.evolve.self_loops
    return divmod(num_others(k, num_nodes, loops), config.embed.cross_fit)


def _sizes(smaller: int, rest: int) -> list[int]:
    return [smaller + 1] * (rest > 0) + [smaller] * (smaller > 0)
