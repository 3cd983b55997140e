"""A residual's sum and its layer norm in one pass, forward and backward."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from ecg_gnn.kernels.gpu.launch import PROGRAMS, row_tiles
from ecg_gnn.kernels.gpu.reductions import sum_type, total_of


@triton.jit
def _forward(
    x,
    update,
    weight,
    bias,
    total,
    normed,
    mean,
    scale,
    rows,
    channels,
    eps: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, WIDTH)
    real = channel < channels
    there = (row < rows)[:, None] & real[None, :]
    place = row[:, None] * channels + channel[None, :]
    value = tl.load(x + place, there, 0.0).to(SUM)
    if update is not None:
        value += tl.load(update + place, there, 0.0).to(SUM)
        tl.store(total + place, value, there)
    middle = tl.sum(value, 1) / channels
    away = tl.where(there, value - middle[:, None], 0.0)
    factor = tl.rsqrt(tl.sum(away * away, 1) / channels + eps)
    gain = tl.load(weight + channel, real, 0.0).to(SUM)
    shift = tl.load(bias + channel, real, 0.0).to(SUM)
    result = away * factor[:, None] * gain[None, :] + shift[None, :]
    tl.store(normed + place, result, there)
    tl.store(mean + row, middle, row < rows)
    tl.store(scale + row, factor, row < rows)


@triton.jit
def _backward(
    total,
    grad_total,
    grad_normed,
    weight,
    mean,
    scale,
    grad,
    partial,
    rows,
    channels,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    """Each program takes every so-many-th tile, and sums its weights' gradients."""
    channel = tl.arange(0, WIDTH)
    real = channel < channels
    gain = tl.load(weight + channel, real, 0.0).to(SUM)
    for_weight = tl.zeros([ROWS, WIDTH], SUM)
    for_bias = tl.zeros([ROWS, WIDTH], SUM)
    step = tl.num_programs(0) * ROWS
    for first in range(tl.program_id(0) * ROWS, rows, step):
        row = (first + tl.arange(0, ROWS)).to(tl.int64)
        there = (row < rows)[:, None] & real[None, :]
        place = row[:, None] * channels + channel[None, :]
        value = tl.load(total + place, there, 0.0).to(SUM)
        given = tl.load(grad_normed + place, there, 0.0).to(SUM)
        middle = tl.load(mean + row, row < rows, 0.0)
        factor = tl.load(scale + row, row < rows, 0.0)
        unit = tl.where(there, (value - middle[:, None]) * factor[:, None], 0.0)
        for_weight += given * unit
        for_bias += given
        given *= gain[None, :]
        along = tl.sum(given * unit, 1) / channels
        level = tl.sum(given, 1) / channels
        result = (given - level[:, None] - unit * along[:, None]) * factor[:, None]
        if grad_total is not None:
            result += tl.load(grad_total + place, there, 0.0).to(SUM)
        tl.store(grad + place, result, there)
    mine = partial + tl.program_id(0) * 2 * channels + channel
    tl.store(mine, tl.sum(for_weight, 0), real)
    tl.store(mine + channels, tl.sum(for_bias, 0), real)


class _AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, update: Tensor | None, *rest: Any
    ) -> tuple[Tensor, Tensor]:
        weight, bias, eps, dtype = rest
        ctx.set_materialize_grads(False)
        x = x.contiguous()
        update = None if update is None else update.contiguous()
        rows, channels = x.shape
        total = x if update is None else torch.empty_like(x)
        normed = torch.empty_like(x, dtype=dtype)
        exact = torch.promote_types(x.dtype, torch.float32)
        mean = x.new_empty(rows, dtype=exact)
        scale = torch.empty_like(mean)
        tile, width = row_tiles(channels)
        if rows:
            given = (x, update, weight, bias, total, normed, mean, scale)
            size = (rows, channels, eps, tile, width, sum_type(x))
            with torch.cuda.device_of(x):
                _forward[(triton.cdiv(rows, tile),)](*given, *size)
        ctx.save_for_backward(total, weight, mean, scale)
        ctx.update_dtype = None if update is None else update.dtype
        if update is None:
            # An input that is returned must not be returned as itself.
            return x.view_as(x), normed
        return total, normed

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_total: Tensor | None, grad_normed: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        total, weight, mean, scale = ctx.saved_tensors
        rows, channels = total.shape
        if grad_normed is None:  # nobody asked for the norm
            update = None if ctx.update_dtype is None else grad_total
            return grad_total, update, None, None, None, None
        grad = torch.empty_like(total)
        tile, width = row_tiles(channels)
        programs = max(1, min(PROGRAMS, triton.cdiv(rows, tile)))
        partial = mean.new_empty(programs, 2 * channels)
        grad_total = None if grad_total is None else grad_total.contiguous()
        given = (total, grad_total, grad_normed.contiguous(), weight, mean, scale)
        size = (rows, channels, tile, width, sum_type(total))
        _backward[(programs,)](*given, grad, partial, *size)
        for_both = total_of(partial).to(weight.dtype)
        grad_weight, grad_bias = for_both.view(2, channels)
        update = None if ctx.update_dtype is None else grad.to(ctx.update_dtype)
        return grad, update, grad_weight, grad_bias, None, None


add_norm: Callable[..., Any] = _AddNorm.apply
"""See ``ecg_gnn.kernels.dense.add_norm``."""
