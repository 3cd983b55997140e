"""Dot products of two rows of a node, head by head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.gpu.launch import next_power_of_2


@triton.jit
def _row_dots(
    a,
    b,
    out,
    nodes,
    channels,
    ROWS: tl.constexpr,
    WIDTH: tl.constexpr,
    HEADS: tl.constexpr,
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
