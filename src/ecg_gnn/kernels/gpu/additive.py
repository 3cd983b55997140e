"""GAT's attention in one pass forward and one gather backward."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.gpu import edge_tiles as et
from ecg_gnn.kernels.gpu.edge_tiles import LOWEST, by_source, by_target
from ecg_gnn.kernels.gpu.launch import over_rows
from ecg_gnn.kernels.gpu.reductions import row_dots, sum_type
from ecg_gnn.kernels.gpu.sums import edge_total


@triton.jit(do_not_specialize=["first_row"])
def _additive_forward(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    scores,
    values,
    slope: tl.constexpr,
    shares,
    lse,
    out,
    channels,
    EDGES: tl.constexpr,
    QUADS: tl.constexpr,
    LANES: tl.constexpr,
    REPS: tl.constexpr,
    HEADS: tl.constexpr,
    SUM: tl.constexpr,
):
    """Shares first, on tiles ``[edges, heads]``, not in every lane of a row."""
    head = tl.arange(0, HEADS)[None, :]
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    own = tl.load(scores + (2 * row + 1) * HEADS + head).to(SUM)
    highest = tl.full([4 * EDGES, HEADS], LOWEST, SUM)
    weight = tl.zeros([4 * EDGES, HEADS], SUM)
    for first in range(begin, end, 4 * EDGES):
        edge, valid, node = et.edges_by_head(first, other, place, kept, end, 4 * EDGES)
        score = tl.load(scores + 2 * node * HEADS + head, valid, 0.0).to(SUM)
        score = tl.where(valid, _leaky(score + own, slope), LOWEST)
        higher = tl.maximum(highest, score)
        term = tl.where(valid, tl.exp(score - higher), 0.0)
        weight = weight * tl.exp(highest - higher) + term
        highest = higher
        tl.store(shares + edge.to(tl.int64)[:, None] * HEADS + head, score, valid)
    top, inverse = et.merge_slots(highest, weight, 0)
    tl.store(lse + row * HEADS + head, et.log_sum(top, inverse))
    tl.debug_barrier()  # a small tile's scores may be read by another thread
    for first in range(begin, end, 4 * EDGES):
        edge = first + tl.arange(0, 4 * EDGES)
        here = shares + edge.to(tl.int64)[:, None] * HEADS + head
        valid = et.still_there(edge, edge < end, place, kept)[:, None]
        share = tl.exp(tl.load(here, valid, LOWEST) - top) * inverse
        tl.store(here, share, valid)
    tl.debug_barrier()  # other threads read them now
    inner, head, real, _ = et.row_places(QUADS, LANES, REPS, HEADS, channels)
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        edge, valid, node, ahead = et.next_edges(
            first, ahead, other, place, kept, end, EDGES
        )
        here = edge.to(tl.int64)[None, None, :, None, None] * HEADS + head
        share = tl.load(shares + here, valid, 0.0)
        there = values + node * channels * HEADS + inner
        total += share * tl.load(there, valid & real, 0.0).to(SUM)
    result = tl.sum(total, 2, keep_dims=True)
    tl.store(out + row * channels * HEADS + inner, result, real)


@triton.jit
def _leaky(score, slope: tl.constexpr):
    return tl.where(score > 0, score, score * slope)


@triton.jit(do_not_specialize=["first_row"])
def _additive_backward(
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
    shares,
    products,
    grad_values,
    grad_scores,
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
    heads = tl.arange(0, HEADS)
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    one = heads[None, :]
    own = tl.load(scores + 2 * row * HEADS + one).to(SUM)
    for first in range(begin, end, 4 * EDGES):
        edge, valid, node = et.edges_by_head(first, other, place, kept, end, 4 * EDGES)
        score = tl.load(scores + (2 * node + 1) * HEADS + one, valid, 0.0).to(SUM)
        log = tl.load(lse + node * HEADS + one, valid, 0.0)
        score = tl.where(valid, _leaky(score + own, slope) - log, LOWEST)
        share = tl.exp(score)
        tl.store(shares + edge.to(tl.int64)[:, None] * HEADS + one, share, valid)
    tl.debug_barrier()  # other threads read them now
    inner, head, real, once = et.row_places(QUADS, LANES, REPS, HEADS, channels)
    value = tl.load(values + row * channels * HEADS + inner, real, 0.0).to(SUM)
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        edge, valid, node, ahead = et.next_edges(
            first, ahead, other, place, kept, end, EDGES
        )
        here = edge.to(tl.int64)[None, None, :, None, None] * HEADS + head
        share = tl.load(shares + here, valid, 0.0)
        there = grad + node * channels * HEADS + inner
        given = tl.load(there, valid & real, 0.0).to(SUM)
        total += share * given
        tl.store(products + here, et.along_row(given * value), valid & once)
    result = tl.sum(total, 2, keep_dims=True)
    tl.store(grad_values + row * channels * HEADS + inner, result, real)
    tl.debug_barrier()
    total_score = tl.zeros([4 * EDGES, HEADS], SUM)
    for first in range(begin, end, 4 * EDGES):
        edge, valid, node = et.edges_by_head(first, other, place, kept, end, 4 * EDGES)
        here = edge.to(tl.int64)[:, None] * HEADS + one
        score = tl.load(scores + (2 * node + 1) * HEADS + one, valid, 0.0).to(SUM)
        change = tl.load(products + here, valid, 0.0)
        change -= tl.load(delta + node * HEADS + one, valid, 0.0)
        change *= tl.load(shares + here, valid, 0.0)
        change = tl.where(score + own > 0, change, change * slope)
        total_score += change
        where = tl.load(place + edge, edge < end, 0).to(tl.int64)[:, None]
        tl.store(grad_edges + where * HEADS + one, change, valid)
    result = tl.sum(total_score, 0, keep_dims=True)
    tl.store(grad_scores + 2 * row * HEADS + one, result)


def additive_forward(
    adjacency: Adjacency, slope: float, scores: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """Messages of GAT's attention, and each row's log-sum-exp."""
    nodes, channels, heads = values.shape
    out = torch.empty_like(values)
    exact = torch.promote_types(values.dtype, torch.float32)
    lse = values.new_empty((nodes, heads), dtype=exact)
    shares = lse.new_empty(adjacency.num_edges, heads)
    given = (scores, values, slope, shares, lse, out, channels)
    rest = (channels, given, sum_type(values))
    over_rows(_additive_forward, "sum", by_target(adjacency), *rest, heads=heads)
    return out, lse


def additive_backward(
    adjacency: Adjacency, slope: float, grad: Tensor, *kept: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of scores and values."""
    scores, values, out, lse = kept
    _, channels, heads = values.shape
    delta = row_dots(grad, out, lse)
    grad_scores, grad_values = torch.empty_like(scores), torch.empty_like(values)
    edges = lse.new_empty(adjacency.num_edges, heads)
    shares, products = torch.empty_like(edges), torch.empty_like(edges)
    given = (scores, values, slope, grad, lse, delta, shares, products)
    made = (grad_values, grad_scores, edges, channels)
    rest = (channels, given + made, sum_type(values))
    pattern = by_source(adjacency)
    over_rows(_additive_backward, "attention", pattern, *rest, heads=heads)
    edge_total(by_target(adjacency), edges, grad_scores[:, 1])
    return grad_scores, grad_values
