"""GAT's attention in one pass forward and one gather backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.autograd.function import once_differentiable

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.gpu.launch import over_rows, shape_of
from ecg_gnn.kernels.gpu.pattern import (
    along_row,
    by_source,
    by_target,
    group_of,
    neighbours,
    row_places,
    still_there,
)
from ecg_gnn.kernels.gpu.rows import row_dots
from ecg_gnn.kernels.gpu.softmax import LOWEST, log_sum, merge_slots
from ecg_gnn.kernels.gpu.sums import edge_total, sum_type


def additive_attention(
    adjacency: Adjacency, scores: Tensor, values: Tensor, slope: float
) -> Tensor:
    """See ``ecg_gnn.kernels.attention.additive_attention``."""
    out: Tensor = _Additive.apply(adjacency, scores, values, slope)
    return out


@triton.jit(do_not_specialize=["first_row"])
def _forward(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    scores,
    values,
    slope: tl.constexpr,
    out,
    lse,
    channels,
    EDGES: tl.constexpr,
    QUADS: tl.constexpr,
    LANES: tl.constexpr,
    REPS: tl.constexpr,
    HEADS: tl.constexpr,
    SUM: tl.constexpr,
):
    row, begin, end = group_of(first_row + tl.program_id(0), offsets, heavy_first)
    one_head = tl.arange(0, HEADS)[None, :]
    own = tl.load(scores + (2 * row + 1) * HEADS + one_head).to(SUM)
    # First the normaliser: it reads H numbers per edge, where values have d.
    many = tl.arange(0, 4 * EDGES)
    highest = tl.full([4 * EDGES, HEADS], LOWEST, SUM)
    weight = tl.zeros([4 * EDGES, HEADS], SUM)
    for first in range(begin, end, 4 * EDGES):
        edge = first + many
        valid = still_there(edge, edge < end, place, kept)[:, None]
        node = neighbours(other, edge, end).to(tl.int64)[:, None]
        score = tl.load(scores + 2 * node * HEADS + one_head, valid, 0.0).to(SUM)
        score = tl.where(valid, _leaky(score + own, slope), LOWEST)
        higher = tl.maximum(highest, score)
        term = tl.where(valid, tl.exp(score - higher), 0.0)
        weight = weight * tl.exp(highest - higher) + term
        highest = higher
    top, inverse = merge_slots(highest, weight, 0)
    tl.store(lse + row * HEADS + one_head, log_sum(top, inverse))
    slot = tl.arange(0, EDGES)
    inner, head, real, _ = row_places(QUADS, LANES, REPS, HEADS, channels)
    own = tl.load(scores + (2 * row + 1) * HEADS + head).to(SUM)
    # As every thread needs them: from [1, HEADS] to heads that threads share.
    top = tl.reshape(top, [QUADS, 1, 1, 1, HEADS // QUADS])
    inverse = tl.reshape(inverse, [QUADS, 1, 1, 1, HEADS // QUADS])
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    ahead = neighbours(other, begin + slot, end)
    for first in range(begin, end, EDGES):
        edge = first + slot
        valid = still_there(edge, edge < end, place, kept)[None, None, :, None, None]
        node = ahead.to(tl.int64)[None, None, :, None, None]
        ahead = neighbours(other, edge + EDGES, end)
        score = tl.load(scores + 2 * node * HEADS + head, valid, 0.0).to(SUM)
        share = tl.where(valid, tl.exp(_leaky(score + own, slope) - top), 0.0)
        there = values + node * channels * HEADS + inner
        total += share * tl.load(there, valid & real, 0.0).to(SUM)
    result = tl.sum(total, 2, keep_dims=True) * inverse
    tl.store(out + row * channels * HEADS + inner, result, real)


@triton.jit
def _leaky(score, slope: tl.constexpr):
    return tl.where(score > 0, score, score * slope)


@triton.jit(do_not_specialize=["first_row"])
def _backward(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    scores,
    values,
    slope: tl.constexpr,
    grad,
    lse,
    delta,
    grad_scores,
    grad_values,
    grad_edges,
    channels,
    EDGES: tl.constexpr,
    QUADS: tl.constexpr,
    LANES: tl.constexpr,
    REPS: tl.constexpr,
    HEADS: tl.constexpr,
    SUM: tl.constexpr,
):
    """One source at a time: its own row stays, its targets' gradients are read."""
    row, begin, end = group_of(first_row + tl.program_id(0), offsets, heavy_first)
    slot = tl.arange(0, EDGES)
    inner, head, real, once = row_places(QUADS, LANES, REPS, HEADS, channels)
    own = tl.load(scores + 2 * row * HEADS + head).to(SUM)
    value = tl.load(values + row * channels * HEADS + inner, real, 0.0).to(SUM)
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    total_score = tl.zeros([QUADS, LANES, EDGES, 1, HEADS // QUADS], SUM)
    ahead = neighbours(other, begin + slot, end)
    for first in range(begin, end, EDGES):
        edge = first + slot
        valid = still_there(edge, edge < end, place, kept)[None, None, :, None, None]
        node = ahead.to(tl.int64)[None, None, :, None, None]
        ahead = neighbours(other, edge + EDGES, end)
        there = grad + node * channels * HEADS + inner
        given = tl.load(there, valid & real, 0.0).to(SUM)
        score = tl.load(scores + (2 * node + 1) * HEADS + head, valid, 0.0).to(SUM)
        score += own
        log = tl.load(lse + node * HEADS + head, valid, 0.0)
        share = tl.where(valid, tl.exp(_leaky(score, slope) - log), 0.0)
        total += share * given
        change = along_row(given * value)
        change = share * (change - tl.load(delta + node * HEADS + head, valid, 0.0))
        change = tl.where(score > 0, change, change * slope)
        total_score += change
        where = tl.load(place + edge, edge < end, 0).to(tl.int64)
        here = where[None, None, :, None, None] * HEADS + head
        tl.store(grad_edges + here, change, valid & once)
    result = tl.sum(total, 2, keep_dims=True)
    tl.store(grad_values + row * channels * HEADS + inner, result, real)
    result = tl.sum(total_score, 2, keep_dims=True)
    tl.store(grad_scores + 2 * row * HEADS + head, result, once)


class _Additive(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        adjacency: Adjacency,
        scores: Tensor,
        values: Tensor,
        slope: float,
    ) -> Tensor:
        scores, values = scores.contiguous(), values.contiguous()
        nodes, channels, heads = values.shape
        out = torch.empty_like(values)
        exact = torch.promote_types(values.dtype, torch.float32)
        lse = values.new_empty((nodes, heads), dtype=exact)
        shape = shape_of(channels, heads)
        given = (scores, values, slope, out, lse, channels)
        rest = (*shape, sum_type(values))
        pattern = by_target(adjacency)
        over_rows(_forward, "sum", pattern, shape.width, given, rest)
        ctx.adjacency, ctx.slope = adjacency, slope
        ctx.save_for_backward(scores, values, out, lse)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        scores, values, out, lse = ctx.saved_tensors
        grad, (_, channels, heads) = grad.contiguous(), values.shape
        delta = row_dots(grad, out, lse)
        grad_scores, grad_values = torch.empty_like(scores), torch.empty_like(values)
        edges = lse.new_empty(ctx.adjacency.num_edges, heads)
        shape = shape_of(channels, heads)
        given = (scores, values, ctx.slope, grad, lse, delta)
        made = (grad_scores, grad_values, edges, channels)
        rest = (*shape, sum_type(values))
        pattern = by_source(ctx.adjacency)
        over_rows(_backward, "attention", pattern, shape.width, given + made, rest)
        edge_total(by_target(ctx.adjacency), edges, grad_scores[:, 1])
        return None, grad_scores, grad_values, None
