"""Rows on the grid, and in half precision, as a GPU multiplies them fastest.

Each kernel does in one pass what plain torch does in a dozen over float64 copies of all
rows, with the same result: on the grid to the last bit, as every device must.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from ecg_gnn.evolve.exact.canonical import GRID_BITS, Canonical
from ecg_gnn.evolve.exact.gpu import MAX_COLUMNS

_COLUMNS_PER_WARP = 256
_TYPES = (torch.float32, torch.float16, torch.bfloat16)

UNIT = 2.0**-13
"""What a one stands for. Centred entries are multiples of 2^-25 and below 2: in these
units they are below 2^14 and nothing is lost to float16's narrow range."""

ROWS, COLUMNS = 256, 64
"""Zeros fill the rows up to multiples of these, so that no product needs a mask."""

# Tensor cores add products exactly formed, but cut off what lies below the largest
# addend's last bit: at most 2^-23 of it per addend. An instruction adds at least eight
# products and the sum so far and cuts once more at the end, ten cuts for eight terms.
_CUT = 2.0**-23
_CUTS_PER_TERM = 2


def takes(z: Tensor) -> bool:
    """Whether rows of ``z`` can be put on the grid here.

    Float64 has numbers so small that they have no exponent of their own.
    """
    return z.dtype in _TYPES and z.size(1) <= MAX_COLUMNS


@triton.jit
def _unit_rows(
    z, grid, half_square, width, stride, ones, BLOCK: constexpr, LEVELS: constexpr
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
    sizes = (width, z.stride(0), 2.0**GRID_BITS, block, block.bit_length() - 1)
    # Multiplying and adding in one step would round once instead of twice.
    options = {"num_warps": _warps(block), "enable_fp_fusion": False}
    with torch.cuda.device_of(z):
        _unit_rows[(num_nodes,)](z, grid, half_square, *sizes, **options)
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
    BLOCK: constexpr,
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

    In multiples of ``unit``, rounded to float16. Gives, of each row w, rounded to h:
    w.m and the squares of w, h and w - h. ``[4, N]``
    """
    num_nodes, width = grid.shape
    statistics = mean.new_empty((4, num_nodes))
    padded = halves.size(1)
    block = triton.next_power_of_2(padded)
    given = (grid, mean, halves, statistics)
    sizes = (num_nodes, width, padded, 2.0**-GRID_BITS, unit, block)
    with torch.cuda.device_of(grid):
        _halve[(num_nodes,)](*given, *sizes, num_warps=_warps(block))
    return statistics


def _warps(block: int) -> int:
    return min(8, max(1, block // _COLUMNS_PER_WARP))


@dataclass(frozen=True)
class Halves:
    """Centred rows w = u - m in float16, and the error of their products.

    As in ``Operand``, similarities are w_u.w_v + t_u + t_v and a constant. With
    h = w rounded and the rest r = w - h, w_u.w_v - h_u.h_v = r_u.w_v + h_u.r_v, and by
    Cauchy-Schwarz that is at most |r_u| max|w| + |h_u| max|r|: measured, not assumed.
    Summing h_u.h_v in float32 adds ``_CUTS_PER_TERM`` cuts per term, each relative to a
    partial sum of absolute products, hence to at most |h_u| max|h|; and adding t_v in
    float32 rounds t_v and the sum, for which there is one cut more, and two for t.
    """

    num_nodes: int
    rows: Tensor  # [N', D'] float16, both padded with zeros
    shift: Tensor  # [N'] float32, t
    own: Tensor  # [N] float64, t and the constant: what scores of row u still lack
    bound: Tensor  # [N] float64, the error in row u

    @classmethod
    def of(cls, canonical: Canonical) -> "Halves":
        """Rows and their error bound."""
        num_nodes, dim = canonical.grid.shape
        device = canonical.grid.device
        mean = canonical.mean()
        shape = (-(-num_nodes // ROWS) * ROWS, -(-dim // COLUMNS) * COLUMNS)
        rows = torch.zeros(shape, dtype=torch.float16, device=device)
        t, *squares = halve(canonical.grid, mean, rows, UNIT)
        norm, kept_norm, rest = (square.sqrt() for square in squares)
        own = t + mean @ mean
        if canonical.euclidean:
            t = own = -squares[0] / 2
        shift = torch.zeros(shape[0], device=device)
        shift[:num_nodes] = t
        product = kept_norm * kept_norm.max()
        bound = rest * norm.max() + kept_norm * rest.max()
        bound += (_CUTS_PER_TERM * dim + 1) * _CUT * product
        bound += 2 * _CUT * t.abs().max()
        # For what float64 rounds here, and where the bound is used in float32.
        bound = 1.001 * bound + 1e-12
        return cls(num_nodes, rows, shift, own, bound)
