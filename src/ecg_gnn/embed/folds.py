"""Cross-fitting: no node is embedded by a model that has seen its label."""

import torch
from torch import Tensor

from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import generator_for


def assign_folds(train_mask: Tensor, num_folds: int, seed: int) -> Tensor:
    """The fold of every node, ``[N]``: training nodes dealt evenly, and the others.

    One model is fitted for each fold, on the training nodes outside it; a node's
    neighbours are found in the space of its own fold's model. Nodes that do not train
    are dealt alike, so that all are searched for by models of the same kind: fitted on
    the same share of the training nodes, and not on themselves. That is what makes the
    neighbourhoods of training and test nodes alike.

    No label is read, so folds are not stratified: were they, the fold of a node, and
    with it its neighbours, would depend on its own label.

    Args:
        train_mask: Nodes that train. ``[N]``
        num_folds: How many folds.
        seed: Of the deal.
    """
    check_folds(train_mask, num_folds)
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
