"""Bias, dropout and GELU in one pass, and the bias's gradient in the backward one."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.engine import Grads, Kept, differentiable
from ecg_gnn.kernels.gpu.launch import PROGRAMS, row_tiles
from ecg_gnn.kernels.gpu.reductions import sum_type, total_of
from ecg_gnn.kernels.hashing import Draw

_BLOCK = 2048


@triton.jit
def _keep(out, seed, size, THRESHOLD: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + place, survives(place, seed, THRESHOLD).to(tl.uint8), place < size)


def keep_mask(size: int, draw: Draw) -> Tensor:
    """Which places a drawing keeps, ``[size]``."""
    out = torch.empty(size, dtype=torch.uint8, device=draw.seed.device)
    if size:
        arguments = (out, draw.seed, size, draw.threshold, _BLOCK)
        with torch.cuda.device_of(out):
            _keep[(triton.cdiv(size, _BLOCK),)](*arguments)
    return out.view(torch.bool)


@triton.jit
def _forward(
    x,
    bias,
    out,
    seed,
    rows,
    channels,
    scale: tl.constexpr,
    THRESHOLD: tl.constexpr,
    GELU: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.arange(0, WIDTH)
    there = (row < rows)[:, None] & (channel < channels)[None, :]
    place = row[:, None] * channels + channel[None, :]
    value = tl.load(x + place, there, 0.0).to(SUM)
    if bias is not None:
        value += tl.load(bias + channel, channel < channels, 0.0).to(SUM)[None, :]
    if THRESHOLD > 0:
        value = tl.where(survives(place, seed, THRESHOLD), value * scale, 0.0)
    if GELU:
        value *= _normal_share(value)
    tl.store(out + place, value, there)


@triton.jit
def _backward(
    x,
    bias,
    grad,
    out,
    seed,
    partial,
    rows,
    channels,
    scale: tl.constexpr,
    THRESHOLD: tl.constexpr,
    GELU: tl.constexpr,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    """Each program takes every so-many-th tile of rows."""
    channel = tl.arange(0, WIDTH)
    real = channel < channels
    total = tl.zeros([ROWS, WIDTH], SUM)
    shift = tl.zeros([WIDTH], SUM)
    if GELU and bias is not None:
        shift = tl.load(bias + channel, real, 0.0).to(SUM)
    step = tl.num_programs(0) * ROWS
    for first in range(tl.program_id(0) * ROWS, rows, step):
        row = (first + tl.arange(0, ROWS)).to(tl.int64)
        there = (row < rows)[:, None] & real[None, :]
        place = row[:, None] * channels + channel[None, :]
        given = tl.load(grad + place, there, 0.0).to(SUM)
        if GELU:
            value = (tl.load(x + place, there, 0.0).to(SUM) + shift[None, :]) * scale
            density = tl.exp(value * value * -0.5) * 0.3989422804014327
            given *= _normal_share(value) + value * density
        if THRESHOLD > 0:
            given = tl.where(survives(place, seed, THRESHOLD), given * scale, 0.0)
        tl.store(out + place, given, there)
        total += given
    if partial is not None:
        mine = partial + tl.program_id(0) * channels + channel
        tl.store(mine, tl.sum(total, 0), real)


@triton.jit
def _normal_share(value):
    """The share of a normal distribution below ``value``."""
    return 0.5 * (1.0 + tl.erf(value * 0.7071067811865476))


def bias_dropout(
    x: Tensor, bias: Tensor | None, draw: Draw | None, gelu: bool
) -> Tensor:
    """``dropout(x + bias)``, then perhaps a GELU; no drawing drops nothing."""
    rows, channels = x.shape
    seed, threshold, scale = draw or (None, 0, 1.0)
    tile, width = row_tiles(channels)
    programs = triton.cdiv(rows, tile)
    bias_type = x.dtype if bias is None else bias.dtype

    def there(x: Tensor, bias: Tensor | None) -> Kept:
        x = x.contiguous()
        out = torch.empty_like(x)
        if x.numel():
            arguments = (x, bias, out, seed, rows, channels, scale, threshold, gelu)
            with torch.cuda.device_of(x):
                _forward[(programs,)](*arguments, tile, width, sum_type(x))
        return out, (x if gelu else None, bias)

    def back(grad: Tensor, x: Tensor | None, bias: Tensor | None) -> Grads:
        grad, partial = grad.contiguous(), None
        out, few = torch.empty_like(grad), max(1, min(PROGRAMS, programs))
        if bias is not None:
            exact = torch.promote_types(grad.dtype, torch.float32)
            partial = grad.new_empty(few, channels, dtype=exact)
        given = (x, bias, grad, out, seed, partial, rows, channels, scale)
        kind = (threshold, gelu, tile, width, sum_type(grad))
        _backward[(few,)](*given, *kind)
        return out, None if partial is None else total_of(partial).to(bias_type)

    return differentiable(there, back, x, bias)


@triton.jit
def _mix(x):
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def survives(place, seed, threshold):
    """Which places a drawing keeps; ``seed`` points to its 64 bits."""
    bits = tl.load(seed)
    low, high = bits.to(tl.uint32), (bits >> 32).to(tl.uint32)
    return _mix(_mix(place.to(tl.uint32) + low) ^ high) >= threshold
