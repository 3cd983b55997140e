"""The largest entries of every row."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024
"""Entries of a row that a warp holds at a time: each one found costs a look at them
all, but later blocks hold few that are found."""
_LEAST_BLOCK = 512  # so that rows of a few lengths share a compiled kernel
_ROWS = 1
"""Rows that a program takes; each waits for the others' entries."""


class Top(NamedTuple):
    """The largest entries of every row, in no order."""

    places: Tensor  # [n, count + 1] int32, -1 where there is none
    outside: Tensor  # [n] float32: nothing else is larger


@triton.jit
def _top(
    entries,
    slack,
    places,
    outside,
    num_rows,
    width,
    count,
    k,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LIST: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    real = row < num_rows
    slot = tl.arange(0, LIST)[None, :]
    lane = tl.arange(0, BLOCK)[None, :]
    unused = tl.zeros([ROWS, 1], tl.int32) + slot > count
    best = tl.where(unused, float("inf"), float("-inf"))
    at = tl.full([ROWS, LIST], -1, tl.int32)
    lowest = tl.min(best, 1)
    for first in range(0, width, BLOCK):
        there = real[:, None] & (first + lane < width)
        place = entries + row[:, None] * width + first + lane
        block = tl.load(place, there, other=float("-inf"))
        top, where = tl.max(block, 1, return_indices=True)
        while tl.max((top > lowest).to(tl.int32), 0) > 0:
            better = (top > lowest)[:, None]
            block = tl.where(lane == where[:, None], float("-inf"), block)
            worst = better & (slot == tl.argmin(best, 1)[:, None])
            best = tl.where(worst, top[:, None], best)
            at = tl.where(worst, first + where[:, None], at)
            lowest = tl.min(best, 1)
            top, where = tl.max(block, 1, return_indices=True)
    # The last one only says what all others are below.
    at = tl.where(slot == tl.argmin(best, 1)[:, None], -1, at)
    kth = best
    for _ in range(k, count + 1):
        kth = tl.where(slot == tl.argmin(kth, 1)[:, None], float("inf"), kth)
    limit = tl.min(kth, 1) - tl.load(slack + row, real, other=0.0)
    at = tl.where(best < limit[:, None], -1, at)
    listed = real[:, None] & (slot <= count)
    tl.store(places + row[:, None] * (count + 1) + slot, at, listed)
    tl.store(outside + row, tl.maximum(lowest, limit), real)


def top(
    entries: Tensor,
    count: int,
    k: int,
    slack: Tensor,
    *,
    rows: int = _ROWS,
    block: int = _BLOCK,
) -> Top:
    """The ``count`` largest entries of each row, less those hardly worth a look.

    Those below the ``k``-th largest by more than ``slack`` [n].
    """
    num_rows, width = entries.shape
    places = entries.new_empty((num_rows, count + 1), dtype=torch.int32)
    outside = entries.new_empty(num_rows)
    _top[(triton.cdiv(num_rows, rows),)](
        entries,
        slack,
        places,
        outside,
        num_rows,
        width,
        count,
        k,
        rows,
        min(block, max(_LEAST_BLOCK, triton.next_power_of_2(width))),
        triton.next_power_of_2(count + 1),
        num_warps=rows,
    )
    return Top(places, outside)
