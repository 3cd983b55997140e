"""Sums over each node's edges: rows with fixed weights, or one weight per head."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.gpu import edge_tiles as et
from ecg_gnn.kernels.gpu.edge_tiles import Pattern
from ecg_gnn.kernels.gpu.launch import over_rows
from ecg_gnn.kernels.gpu.reductions import sum_type


@triton.jit(do_not_specialize=["first_row"])
def _scaled_sum(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    x,
    stride,
    row_scale,
    other_scale,
    out,
    channels,
    EDGES: tl.constexpr,
    WIDTH: tl.constexpr,
    SUM: tl.constexpr,
):
    """``out[u] = row_scale[u] * sum_e other_scale[v(e)] x[v(e)]`` over kept edges."""
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    channel = tl.arange(0, WIDTH)
    real = channel < channels
    total = tl.zeros([EDGES, WIDTH], SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        edge = first + tl.arange(0, EDGES)
        valid = et.still_there(edge, edge < end, place, kept)
        node = ahead.to(tl.int64)
        ahead = et.neighbours(other, edge + EDGES, end)
        there = valid[:, None] & real[None, :]
        rows = tl.load(x + node[:, None] * stride + channel[None, :], there, 0.0)
        rows = rows.to(SUM)
        if other_scale is not None:
            rows *= tl.load(other_scale + node, valid, 0.0).to(SUM)[:, None]
        total += rows
    result = tl.sum(total, 0)
    if row_scale is not None:
        result *= tl.load(row_scale + row).to(SUM)
    tl.store(out + row * channels + channel, result, real)


def scaled_sum(
    pattern: Pattern, x: Tensor, row_scale: Tensor | None, other_scale: Tensor | None
) -> Tensor:
    """Sum the kept neighbours' rows ``[N, d]``, scaled by node and by neighbour."""
    x = x if x.stride(1) == 1 else x.contiguous()
    channels = x.size(1)
    out = x.new_empty(x.shape)
    given = (x, x.stride(0), row_scale, other_scale, out, channels)
    over_rows(_scaled_sum, "sum", pattern, channels, given, sum_type(x))
    return out


@triton.jit(do_not_specialize=["first_row"])
def _head_sum(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    x,
    stride,
    weight,
    out,
    out_stride,
    channels,
    EDGES: tl.constexpr,
    QUADS: tl.constexpr,
    LANES: tl.constexpr,
    REPS: tl.constexpr,
    HEADS: tl.constexpr,
    SUM: tl.constexpr,
):
    """``out[u, c, h] = sum_e weight[e, h] x[v(e), c, h]`` over kept edges."""
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    inner, head, real, _ = et.row_places(QUADS, LANES, REPS, HEADS, channels)
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        edge, valid, node, ahead = et.next_edges(
            first, ahead, other, place, kept, end, EDGES
        )
        here = edge.to(tl.int64)[None, None, :, None, None] * HEADS + head
        factor = tl.load(weight + here, valid, 0.0).to(SUM)
        rows = tl.load(x + node * stride + inner, valid & real, 0.0)
        total += factor * rows.to(SUM)
    result = tl.sum(total, 2, keep_dims=True)
    tl.store(out + row * out_stride + inner, result, real)


def head_sum(pattern: Pattern, weight: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Sum rows ``[N, C, H]`` with one weight per edge and head, in target order."""
    _, channels, heads = x.shape
    given = (x, x.stride(0), weight, out, out.stride(0), channels)
    rest = (channels, given, sum_type(x))
    over_rows(_head_sum, "dot", pattern, *rest, heads=heads)
    return out


@triton.jit
def _edge_total(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    values,
    out,
    out_stride,
    EDGES: tl.constexpr,
    HEADS: tl.constexpr,
    SUM: tl.constexpr,
):
    """``out[u, h] = sum_e values[e, h]`` over kept edges, in target order."""
    row, begin, end = et.group_of(tl.program_id(0), offsets, heavy_first)
    head = tl.arange(0, HEADS)
    total = tl.zeros([EDGES, HEADS], SUM)
    for first in range(begin, end, EDGES):
        edge = first + tl.arange(0, EDGES)
        valid = et.still_there(edge, edge < end, place, kept)
        here = edge.to(tl.int64)[:, None] * HEADS + head[None, :]
        total += tl.load(values + here, valid[:, None], 0.0).to(SUM)
    tl.store(out + row * out_stride + head, tl.sum(total, 0))


def edge_total(pattern: Pattern, values: Tensor, out: Tensor) -> Tensor:
    """Sum ``[E, H]`` values over each target's edges into ``out``, ``[N, H]``."""
    nodes, heads = out.shape
    if nodes:
        size = (32, heads, sum_type(values))
        given = (values, out, out.stride(0))
        with torch.cuda.device_of(values):
            _edge_total[(nodes,)](*pattern[:-1], *given, *size, num_warps=1)
    return out


@triton.jit
def _degree(offsets, other, place, kept, heavy_first, out, EDGES: tl.constexpr):
    row, begin, end = et.group_of(tl.program_id(0), offsets, heavy_first)
    total = tl.zeros([EDGES], tl.int32)
    for first in range(begin, end, EDGES):
        edge = first + tl.arange(0, EDGES)
        total += et.still_there(edge, edge < end, place, kept).to(tl.int32)
    tl.store(out + row, tl.sum(total, 0))


def kept_degree(pattern: Pattern) -> Tensor:
    """How many edges of each node survived DropEdge, ``[N]``."""
    out = pattern.heavy_first.new_empty(pattern.heavy_first.shape)
    if out.numel():
        with torch.cuda.device_of(out):
            _degree[(out.numel(),)](*pattern[:-1], out, 32, num_warps=1)
    return out
