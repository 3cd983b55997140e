"""Which rows are equal, by their hashes."""

import torch
from torch import Tensor

_HASH_ELEMENTS = 1 << 20
_CUDA_HASH_ELEMENTS = 1 << 26  # a GPU pays per launch instead


def _signed(constant: int) -> int:
    return constant - (1 << 64) if constant >= 1 << 63 else constant


_GOLDEN = _signed(0x9E3779B97F4A7C15)
_MIX_1 = _signed(0xBF58476D1CE4E5B9)
_MIX_2 = _signed(0x94D049BB133111EB)


def mix(x: Tensor) -> Tensor:
    """SplitMix64's finaliser (Steele et al. 2014) on int64, wrapping around."""
    x = x + _GOLDEN
    x = (x ^ shift_right(x, 30)) * _MIX_1
    x = (x ^ shift_right(x, 27)) * _MIX_2
    return x ^ shift_right(x, 31)


def shift_right(x: Tensor, bits: int) -> Tensor:
    """As ``>>`` on unsigned numbers."""
    # `>>` keeps the sign of an int64; the hash needs zeros shifted in.
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def distinct_rows(grid: Tensor) -> Tensor:
    """A group number per row, the same for equal rows and only for those, ``[N]``."""
    weights = mix(torch.arange(grid.size(1), device=grid.device))
    elements = _CUDA_HASH_ELEMENTS if grid.is_cuda else _HASH_ELEMENTS
    size = max(1, elements // max(1, grid.size(1)))
    hashes = torch.cat([(_whole(g) * weights).sum(1) for g in grid.split(size)])
    groups: Tensor
    distinct, groups = torch.unique(hashes, return_inverse=True)
    if distinct.numel() == hashes.numel():
        return groups  # unlike hashes, unlike rows
    leader = first_of_group(groups)[groups]
    pieces = zip(grid.split(size), leader.split(size), strict=True)
    if all(torch.equal(piece, grid[lead]) for piece, lead in pieces):
        return groups
    # Two different rows with one hash: practically never, yet never wrong.
    groups = torch.unique(grid, dim=0, return_inverse=True)[1]
    return groups


def first_of_group(groups: Tensor) -> Tensor:
    """The first row of each group: [g]."""
    size = groups.numel()
    nodes = torch.arange(size, device=groups.device)
    first = nodes.new_full((int(groups.max()) + 1,), size)
    return first.scatter_reduce_(0, groups, nodes, "amin")


def _whole(rows: Tensor) -> Tensor:
    """Whole numbers, equal for equal numbers: 0.0 is -0.0."""
    if rows.dtype == torch.float32:
        bits = (rows + 0.0).view(torch.int32).long()
        return bits ^ (bits >> 23)  # the low ones of round numbers are all zero
    return rows.long()
