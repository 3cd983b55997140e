"""Rows on the grid, and their halves, in one pass each.

What plain torch does in a dozen passes over float64 copies of all rows, with the same
result: on the grid to the last bit, as every device must.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.evolve.canonical import GRID_BITS

_MOST_COLUMNS = 8192  # a program holds a whole row
_COLUMNS_PER_WARP = 256
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


def takes(z: Tensor) -> bool:
    """Whether rows of ``z`` can be put on the grid here.

    Float64 has numbers so small that they have no exponent of their own.
    """
    return z.dtype in _TYPES and holds(z)


def holds(rows: Tensor) -> bool:
    """Whether a program holds one of the ``rows``."""
    return rows.size(1) <= _MOST_COLUMNS


@triton.jit
def _unit_rows(
    z, grid, half_square, width, stride, ones, BLOCK: tl.constexpr, LEVELS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    x = tl.load(z + row * stride + column, there, other=0.0).to(tl.float64)
    largest = tl.max(tl.abs(x), 0)
    exponent = (largest.to(tl.int64, bitcast=True) >> 52) - 1022
    power = tl.where(largest > 0, 1023 - exponent, 1023) << 52
    x *= power.to(tl.float64, bitcast=True)
    # The tree of additions by which every device gets the same sum.
    total = x * x
    for level in tl.static_range(LEVELS):
        total = tl.sum(tl.reshape(total, (2, BLOCK >> (level + 1))), 0)
    norm = tl.sqrt(tl.sum(total, 0))
    x = x / tl.where(norm == 0, 1.0, norm) * ones
    # So large a number has no digits behind the point: adding it rounds to even.
    large = 6755399441055744.0
    x = (x + large) - large
    tl.store(grid + row * width + column, x.to(tl.int32), there)
    tl.store(half_square + row, tl.sum(x * x, 0) / (2.0 * ones * ones))


def unit_rows(z: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of norm 1 on the grid [N, D] int32, and half their squares [N] float64."""
    num_nodes, width = z.shape
    z = z if z.stride(1) == 1 else z.contiguous()
    grid = torch.empty((num_nodes, width), dtype=torch.int32, device=z.device)
    half_square = torch.empty(num_nodes, dtype=torch.float64, device=z.device)
    block = triton.next_power_of_2(width)
    with torch.cuda.device_of(z):
        _unit_rows[(num_nodes,)](
            z,
            grid,
            half_square,
            width,
            z.stride(0),
            2.0**GRID_BITS,
            block,
            block.bit_length() - 1,
            num_warps=_warps(block),
            # Multiplying and adding in one step would round once instead of twice.
            enable_fp_fusion=False,
        )
    return grid, half_square


@triton.jit
def _halve(
    grid,
    mean,
    halves,
    statistics,
    num_nodes,
    width,
    padded,
    step,
    unit,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    centre = tl.load(mean + column, there, other=0.0)
    x = tl.load(grid + row * width + column, there, other=0).to(tl.float64)
    x = x * step - centre
    half = (x / unit).to(tl.float16)
    tl.store(halves + row * padded + column, half, column < padded)
    kept = half.to(tl.float64) * unit
    rest = x - kept
    tl.store(statistics + row, tl.sum(x * centre, 0))
    tl.store(statistics + num_nodes + row, tl.sum(x * x, 0))
    tl.store(statistics + 2 * num_nodes + row, tl.sum(kept * kept, 0))
    tl.store(statistics + 3 * num_nodes + row, tl.sum(rest * rest, 0))


def halve(grid: Tensor, mean: Tensor, halves: Tensor, unit: float) -> Tensor:
    """Fill the first rows of ``halves`` with those of ``grid`` less ``mean``.

    In multiples of ``unit``, rounded to float16.

    Returns:
        Of each row w, rounded to h: w.m and the squares of w, h and w - h. ``[4, N]``
    """
    num_nodes, width = grid.shape
    statistics = mean.new_empty((4, num_nodes))
    padded = halves.size(1)
    block = triton.next_power_of_2(padded)
    with torch.cuda.device_of(grid):
        _halve[(num_nodes,)](
            grid,
            mean,
            halves,
            statistics,
            num_nodes,
            width,
            padded,
            2.0**-GRID_BITS,
            unit,
            block,
            num_warps=_warps(block),
        )
    return statistics


def _warps(block: int) -> int:
    return min(8, max(1, block // _COLUMNS_PER_WARP))
