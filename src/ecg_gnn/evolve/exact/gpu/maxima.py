"""Scores of all pairs, of which only the maxima of small groups leave the chip.

And the largest entries of every row: of those maxima, then of single scores.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from ecg_gnn.evolve.exact.gpu.halves import UNIT, Halves

GROUP = 16
"""Columns per group. As many rows as one warp holds of a product, so that a tile's
maxima over its rows need no memory shared between warps."""
_BLOCK = 1024
"""Entries of a row that a warp holds at a time. Each entry that is kept costs a pass
over all of them, but later blocks hold few such entries."""
_LEAST_BLOCK = 512  # so that rows of a few lengths share a compiled kernel
_ROWS = 1
"""Rows per program; each waits for the others."""


@dataclass(frozen=True)
class Tiling:
    """How the products are cut up; found by ``benchmarks/tune_knn.py``."""

    rows: int = 128
    columns: int = 128
    depth: int = 64
    """Of one step along the rows' entries."""
    square: int = 2048
    """Tiles are taken square by square of this size, for the cache's sake."""
    warps: int = 4
    stages: int = 3


TILING = Tiling()


@triton.jit
def _place(
    program, across, M: constexpr, N: constexpr, SQUARE: constexpr, SYMMETRIC: constexpr
):
    """The first row and column of a program's tile, square by square.

    Squares of the upper triangle are counted column by column, so that the number of
    those before column J is J (J + 1) / 2; others, ``across`` of them, row by row.
    """
    down = SQUARE // M
    tiles = down * (SQUARE // N)
    square, tile = program // tiles, program % tiles
    if SYMMETRIC:
        right = ((tl.sqrt(8.0 * square + 1.0) - 1.0) / 2.0).to(tl.int32)
        # The root may be off by a rounding.
        right -= (right * (right + 1) // 2 > square).to(tl.int32)
        right += ((right + 1) * (right + 2) // 2 <= square).to(tl.int32)
        below = square - right * (right + 1) // 2
    else:
        below, right = square // across, square % across
    return below * SQUARE + tile % down * M, right * SQUARE + tile // down * N


@triton.jit
def _group_maxima(
    halves,
    shift,
    out,
    first_row,
    stop_row,
    num_nodes,
    padded,
    across,
    stride,
    scale,
    WIDTH: constexpr,
    M: constexpr,
    N: constexpr,
    DEPTH: constexpr,
    SQUARE: constexpr,
    GROUP: constexpr,
    SYMMETRIC: constexpr,
):
    row, column = _place(tl.program_id(0), across, M, N, SQUARE, SYMMETRIC)
    row += first_row
    idle = (row >= stop_row) | (column >= padded)
    if SYMMETRIC:
        idle |= column + N <= row
    if idle:
        return
    rows, columns = row + tl.arange(0, M), column + tl.arange(0, N)
    depth = tl.arange(0, DEPTH)
    left = halves + rows.to(tl.int64)[:, None] * WIDTH + depth[None, :]
    right = halves + columns.to(tl.int64)[None, :] * WIDTH + depth[:, None]
    product = tl.zeros([M, N], tl.float32)
    for _ in range(0, WIDTH, DEPTH):
        product = tl.dot(tl.load(left), tl.load(right), product)
        left += DEPTH
        right += DEPTH
    product *= scale
    if (column < row + M) & (row < column + N) | (column + N > num_nodes):
        other = (rows[:, None] != columns[None, :]) & (columns < num_nodes)[None, :]
        product = tl.where(other, product, float("-inf"))
    scores = product + tl.load(shift + columns)[None, :]
    best = tl.max(tl.reshape(scores, (M, N // GROUP, GROUP)), 2)
    groups = column // GROUP + tl.arange(0, N // GROUP)
    place = (rows - first_row).to(tl.int64)[:, None] * stride + groups[None, :]
    tl.store(out + place, best, (rows < stop_row)[:, None])
    if SYMMETRIC:
        # On the diagonal these are the maxima just written, to the last bit or so.
        scores = product + tl.load(shift + rows)[:, None]
        if row + M > num_nodes:
            scores = tl.where((rows < num_nodes)[:, None], scores, float("-inf"))
        best = tl.max(tl.reshape(scores, (M // GROUP, GROUP, N)), 1)
        groups = row // GROUP + tl.arange(0, M // GROUP)
        place = columns.to(tl.int64)[None, :] * stride + groups[:, None]
        tl.store(out + place, best, (columns < num_nodes)[None, :])


def group_maxima(
    halves: Halves, start: int, stop: int, tiling: Tiling = TILING
) -> Tensor:
    """The best score of each row of ``start:stop`` in every group of columns: [n, G].

    Without the row's own shift. All rows at once cost half: scores are symmetric, so
    a tile above the diagonal serves its rows and, transposed, its columns.
    """
    padded, width = halves.rows.shape
    assert start % tiling.rows == 0
    symmetric = stop - start == halves.num_nodes
    out = halves.shift.new_empty((stop - start, padded // GROUP))
    across = triton.cdiv(padded, tiling.square)
    down = triton.cdiv(stop - start, tiling.square)
    squares = across * (across + 1) // 2 if symmetric else down * across
    tiles = (tiling.square // tiling.rows) * (tiling.square // tiling.columns)
    given = (halves.rows, halves.shift, out, start, stop, halves.num_nodes)
    sizes = (padded, across, out.stride(0), UNIT**2, width)
    shape = (tiling.rows, tiling.columns, tiling.depth, tiling.square)
    options = {"num_warps": tiling.warps, "num_stages": tiling.stages}
    launch = _group_maxima[(squares * tiles,)]
    launch(*given, *sizes, *shape, GROUP, symmetric, **options)
    return out


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
    ROWS: constexpr,
    BLOCK: constexpr,
    LIST: constexpr,
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
    given = (entries, slack, places, outside, num_rows, width, count, k, rows)
    block = min(block, max(_LEAST_BLOCK, triton.next_power_of_2(width)))
    size = triton.next_power_of_2(count + 1)
    _top[(triton.cdiv(num_rows, rows),)](*given, block, size, num_warps=rows)
    return Top(places, outside)
