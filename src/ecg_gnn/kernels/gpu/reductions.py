"""Sums of columns, dot products of rows and the area under the ROC curve."""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from ecg_gnn.kernels.gpu.launch import PROGRAMS, next_power_of_2

_ROWS, _WIDTH = 32, 64
MOST_SCORES = 16_384  # beyond it sorting is faster
_OTHERS = 128


@triton.jit
def _columns(x, out, rows, channels, ROWS: constexpr, WIDTH: constexpr, SUM: constexpr):
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


@triton.jit
def _row_dots(
    a, b, out, nodes, channels, ROWS: constexpr, WIDTH: constexpr, HEADS: constexpr
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    head = tl.arange(0, HEADS)
    channel = tl.arange(0, WIDTH)
    inner = channel[:, None] * HEADS + head[None, :]
    place = row[:, None, None] * channels * HEADS + inner[None]
    there = (row < nodes)[:, None, None] & (channel < channels)[None, :, None]
    left = tl.load(a + place, there, 0.0).to(out.dtype.element_ty)
    right = tl.load(b + place, there, 0.0).to(out.dtype.element_ty)
    target = out + row[:, None] * HEADS + head[None, :]
    tl.store(target, tl.sum(left * right, 1), (row < nodes)[:, None])


def row_dots(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """``sum_c a[n, c, h] b[n, c, h]``, of the shape and type of ``like``."""
    nodes, channels, heads = a.shape
    out = torch.empty_like(like)
    width = next_power_of_2(channels)
    rows = max(1, 1024 // (width * heads))
    if nodes:
        grid = (triton.cdiv(nodes, rows),)
        with torch.cuda.device_of(a):
            _row_dots[grid](a, b, out, nodes, channels, rows, width, heads, num_warps=2)
    return out


def sum_type(x: Tensor) -> tl.dtype:
    """Sums over thousands of neighbours need float32 at least."""
    return tl.float64 if x.element_size() == 8 else tl.float32


@triton.jit
def _count_pairs(score, y, partial, size, programs, ROWS: constexpr, OTHERS: constexpr):
    """Twice the pairs that positives win against negatives, positives, and NaN."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = tl.load(score + row, row < size, 0.0)
    positive = tl.load(y + row, row < size, 0) == 1
    won = tl.zeros([ROWS, OTHERS], tl.int32)
    for first in range(0, size, OTHERS):
        other = first + tl.arange(0, OTHERS)
        theirs = tl.load(score + other, other < size, 0.0)
        negative = tl.load(y + other, other < size, 1) == 0
        above = own[:, None] > theirs[None, :]
        equal = own[:, None] == theirs[None, :]
        twice = above.to(tl.int32) * 2 + equal.to(tl.int32)
        won += tl.where(negative[None, :], twice, 0)
    pairs = tl.where(positive, tl.sum(won, 1), 0)
    mine = partial + tl.program_id(0)
    tl.store(mine, tl.sum(pairs.to(tl.int64), 0))
    tl.store(mine + programs, tl.sum(positive.to(tl.int64), 0))
    tl.store(mine + 2 * programs, tl.sum((own != own).to(tl.int64), 0))


@triton.jit
def _share_won(partial, out, size, programs, BLOCK: constexpr):
    """Won pairs among all; NaN without pairs, or where a score is NaN."""
    place = tl.arange(0, BLOCK)
    there = place < programs
    pairs = tl.sum(tl.load(partial + place, there, 0), 0)
    positive = tl.sum(tl.load(partial + programs + place, there, 0), 0)
    bad = tl.sum(tl.load(partial + 2 * programs + place, there, 0), 0)
    among = 2 * positive * (size - positive)
    good = (among > 0) & (bad == 0)
    share = pairs.to(tl.float64) / tl.where(good, among, 1).to(tl.float64)
    tl.store(out, tl.where(good, share, float("nan")))


def roc_auc(score: Tensor, y: Tensor) -> Tensor:
    """Share of pairs in which the positive scores higher, ties half, in float64.

    By comparing every pair: sorting takes a dozen kernels, each waiting for the last; a
    few thousand scores are compared in less time than one of those needs to start.
    """
    size = score.numel()
    programs = max(1, triton.cdiv(size, _ROWS))
    partial = torch.empty(3 * programs, dtype=torch.int64, device=score.device)
    out = torch.empty((), dtype=torch.float64, device=score.device)
    given = (score.contiguous(), y.contiguous(), partial, size, programs)
    with torch.cuda.device_of(score):
        _count_pairs[(programs,)](*given, _ROWS, _OTHERS)
        block = triton.next_power_of_2(programs)
        _share_won[(1,)](partial, out, size, programs, block)
    return out
