"""Splits that are drawn: stratified by class, or with fewer training nodes."""

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.seeds import derive_seed

Masks = tuple[Tensor, Tensor, Tensor]
# Train, validation, test, train: dealt to each class's shuffled nodes in turn. A class
# ends within one node of its 50/25/25 share, its first node trains, and three nodes
# reach all three parts.
_DEAL = np.array([0, 1, 2, 0], dtype=np.int8)


def stratified_splits(y: Tensor, num_splits: int, seed: int) -> Masks:
    """Draw ``num_splits`` independent 50/25/25 splits, stratified by class.

    Split ``i`` depends on the classes ``y`` [N], ``seed`` and ``i`` alone, so asking
    for more splits does not change the first ones. Nodes of class -1 are in no part.
    Gives the train, validation and test masks, each bool [num_splits, N].
    """
    check_in_range("num_splits", num_splits, 1, None)
    labels = y.cpu().numpy()
    labelled = np.flatnonzero(labels != UNLABELLED)
    parts = np.full((num_splits, len(labels)), -1, dtype=np.int8)
    for index in range(num_splits):
        rng = np.random.default_rng(derive_seed(seed, "split", index))
        by_class = rng.permutation(labelled)
        by_class = by_class[np.argsort(labels[by_class], kind="stable")]
        _, sizes = np.unique(labels[by_class], return_counts=True)
        places = np.concatenate([np.arange(size) for size in sizes])
        parts[index, by_class] = _DEAL[places % len(_DEAL)]
    train, val, test = (torch.from_numpy(parts == part) for part in range(3))
    return train, val, test


def fewer_labels(y: Tensor, train_masks: Tensor, rate: float, seed: int) -> Tensor:
    """Training masks [S, N] with ``rate`` of all labelled nodes, of each class alike.

    A class keeps one node at least. Of the same seed, the nodes of a lower rate are
    among those of a higher one. Nodes of class -1 count for nothing, and the classes of
    nodes that do not train decide nothing.
    """
    labels, masks = y.numpy(), train_masks.clone()
    labelled = int((labels != UNLABELLED).sum())
    for index, mask in enumerate(masks):
        counts = np.bincount(labels[mask.numpy() & (labels != UNLABELLED)])
        trained = int(counts.sum())
        wanted = np.round(rate * labelled / trained * counts)
        wanted = np.clip(wanted, np.minimum(counts, 1), None).astype(int)
        if wanted.sum() > trained + len(counts):  # each class is rounded
            raise InputError(
                f"'label_rate' must be at most {trained / labelled:.3g}, the share "
                f"of labelled nodes that train in split {index} (got {rate})"
            )
        rng = np.random.default_rng(derive_seed(seed, "label rate", index))
        nodes = rng.permutation(len(labels))
        nodes = nodes[mask.numpy()[nodes]]
        for label, count in enumerate(wanted):
            mask[nodes[labels[nodes] == label][count:]] = False
    return masks
