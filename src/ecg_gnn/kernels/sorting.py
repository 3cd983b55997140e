"""Stable sorts of node numbers: by counting on a CPU, in time linear in the edges."""

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor


def stable_argsort(ids: Tensor, bound: int) -> Tensor:
    """As torch's stable ``argsort``, for whole numbers below ``bound``, ``[E]``."""
    if ids.device.type != "cpu" or not ids.numel():
        return torch.argsort(ids, stable=True)
    # A matrix whose row e has its one entry in column ids[e]: its columns, one after
    # another, are the sorted edges. Transposing it is a counting sort in C++.
    size = ids.numel()
    width = np.int32 if max(size, bound) < 2**31 else np.int64
    rows, columns = np.arange(size + 1, dtype=width), ids.numpy().astype(width)
    entry = np.zeros(size, dtype=np.bool_)
    parts = (entry, columns, rows)
    matrix = csr_array(parts, shape=(size, bound))  # type: ignore[type-var]
    return torch.from_numpy(matrix.tocsc().indices).long()


def lexicographic_order(source: Tensor, target: Tensor, bound: int) -> Tensor | None:
    """The order by target, then by source, ``[E]``; None if they are in it already."""
    if not target.numel():
        return None
    if target.device.type != "cpu":
        return torch.argsort(target * bound + source, stable=True)
    if _ascends(target, source):
        return None
    first = None if _ascends(source) else stable_argsort(source, bound)
    second = stable_argsort(target if first is None else target[first], bound)
    return second if first is None else first[second]


def _ascends(ids: Tensor, then: Tensor | None = None) -> bool:
    """Whether numbers never fall; where they are equal, those of ``then``."""
    rises = ids[1:] > ids[:-1]
    stays = ids[1:] == ids[:-1]
    if then is not None:
        stays &= then[1:] >= then[:-1]
    return bool((rises | stays).all())
