"""Random stratified splits: 50% training, 25% validation, 25% test."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.seeds import derive_seed

TRAIN, VAL, TEST = range(3)

# Dealt to each class's shuffled nodes in turn. A class ends within one node of its
# 50/25/25 share, its first node trains, and three nodes reach all three parts.
_DEAL = np.array([TRAIN, VAL, TEST, TRAIN], dtype=np.int8)


def stratified_splits(
    y: Tensor, num_splits: int, seed: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw ``num_splits`` independent 50/25/25 splits, stratified by class.

    Split ``i`` depends on the labels, ``seed`` and ``i`` alone, so asking for more
    splits does not change the first ones.

    Args:
        y: The class of each node, [N]; -1 where it is unknown, and in no part.
        num_splits: How many splits to draw.
        seed: Random seed.

    Returns:
        The train, validation and test masks, each bool [num_splits, N].
    """
    check_in_range("num_splits", num_splits, 1, None)
    if y.dim() != 1 or y.is_floating_point() or bool((y == UNLABELLED).all()):
        raise InputError(
            "'y' must be a non-empty [N] tensor of integer classes "
            f"(got {y.dtype} {list(y.shape)})"
        )
    labels = y.cpu().numpy()
    labelled = np.flatnonzero(labels != UNLABELLED)
    parts = np.full((num_splits, len(labels)), -1, dtype=np.int8)
    for index in range(num_splits):
        rng = np.random.default_rng(derive_seed(seed, "split", index))
        parts[index, labelled] = _deal(labels[labelled], rng)
    masks = [torch.from_numpy(parts == part) for part in (TRAIN, VAL, TEST)]
    return masks[0], masks[1], masks[2]


def _deal(labels: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int8]:
    """Assign each node to a part, class by class in random order."""
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    ordered = labels[by_class]
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    start = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    parts = np.empty(len(labels), dtype=np.int8)
    parts[by_class] = _DEAL[(np.arange(len(labels)) - start) % len(_DEAL)]
    return parts
