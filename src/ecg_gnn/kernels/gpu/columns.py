"""Sums of columns in two stages, in an order that never changes."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.gpu.launch import PROGRAMS
from ecg_gnn.kernels.gpu.sums import sum_type

_ROWS, _WIDTH = 32, 64


@triton.jit
def _columns(
    x,
    out,
    rows,
    channels,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    """``out[p] = sum`` of every so-many-th tile of rows, from the p-th on."""
    channel = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    real = channel < channels
    total = tl.zeros([ROWS, WIDTH], SUM)
    step = tl.num_programs(0) * ROWS
    for first in range(tl.program_id(0) * ROWS, rows, step):
        row = (first + tl.arange(0, ROWS)).to(tl.int64)
        there = (row < rows)[:, None] & real[None, :]
        place = row[:, None] * channels + channel[None, :]
        total += tl.load(x + place, there, 0.0).to(SUM)
    tl.store(out + tl.program_id(0) * channels + channel, tl.sum(total, 0), real)


def column_sum(x: Tensor) -> Tensor:
    """Sum of every column, ``[N, d]`` to ``[d]``: a bias's gradient."""
    columns = triton.cdiv(x.size(1), _WIDTH)
    programs = max(1, min(PROGRAMS // columns + 1, triton.cdiv(x.size(0), 4 * _ROWS)))
    return total_of(_sum_parts(x.contiguous(), programs)).to(x.dtype)


def total_of(partial: Tensor) -> Tensor:
    """Sum of a few hundred rows, ``[P, d]`` to ``[d]``."""
    return _sum_parts(partial, 1)[0]


def _sum_parts(x: Tensor, programs: int) -> Tensor:
    rows, channels = x.shape
    exact = torch.promote_types(x.dtype, torch.float32)
    out = x.new_empty(programs, channels, dtype=exact)
    grid = (programs, triton.cdiv(channels, _WIDTH))
    if channels:
        with torch.cuda.device_of(x):
            _columns[grid](x, out, rows, channels, _ROWS, _WIDTH, sum_type(x))
    return out
