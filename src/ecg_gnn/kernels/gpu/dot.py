"""The transformer's attention: two gathers forward, three backward."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.gpu import edge_tiles as et
from ecg_gnn.kernels.gpu.edge_tiles import LOWEST
from ecg_gnn.kernels.gpu.launch import over_rows
from ecg_gnn.kernels.gpu.reductions import row_dots, sum_type
from ecg_gnn.kernels.gpu.sums import head_sum


@triton.jit(do_not_specialize=["first_row"])
def _dot_forward(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    query,
    key,
    values,
    stride,
    scale: tl.constexpr,
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
    """Each slot of a tile keeps a softmax of its own; they are merged at the end."""
    inner, head, real, once = et.row_places(QUADS, LANES, REPS, HEADS, channels)
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    asked = tl.load(query + row * stride + inner, real, 0.0).to(SUM) * scale
    highest = tl.full([QUADS, LANES, EDGES, 1, HEADS // QUADS], LOWEST, SUM)
    weight = tl.zeros([QUADS, LANES, EDGES, 1, HEADS // QUADS], SUM)
    total = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        _, valid, node, ahead = et.next_edges(
            first, ahead, other, place, kept, end, EDGES
        )
        keys = tl.load(key + node * stride + inner, valid & real, 0.0).to(SUM)
        rows = tl.load(values + node * stride + inner, valid & real, 0.0).to(SUM)
        score = et.along_row(asked * keys)
        score = tl.where(valid, score, LOWEST)
        higher = tl.maximum(highest, score)
        fading = tl.exp(highest - higher)
        share = tl.where(valid, tl.exp(score - higher), 0.0)
        weight = weight * fading + share
        total = total * fading + share * rows
        highest = higher
    top, inverse = et.merge_slots(highest, weight, 2)
    result = tl.sum(total * tl.exp(highest - top), 2, keep_dims=True) * inverse
    tl.store(out + row * channels * HEADS + inner, result, real)
    tl.store(lse + row * HEADS + head, et.log_sum(top, inverse), once)


@triton.jit(do_not_specialize=["first_row"])
def _dot_backward(
    offsets,
    other,
    place,
    kept,
    heavy_first,
    first_row,
    grad,
    lse,
    delta,
    query,
    key,
    values,
    stride,
    scale: tl.constexpr,
    grad_key,
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
    """One source at a time: its key and value stay, its targets' rows are read."""
    total_key = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    total_value = tl.zeros([QUADS, LANES, EDGES, REPS, HEADS // QUADS], SUM)
    row, begin, end = et.group_of(first_row + tl.program_id(0), offsets, heavy_first)
    inner, head, real, once = et.row_places(QUADS, LANES, REPS, HEADS, channels)
    own_key = tl.load(key + row * stride + inner, real, 0.0).to(SUM) * scale
    value = tl.load(values + row * stride + inner, real, 0.0).to(SUM)
    ahead = et.neighbours(other, begin + tl.arange(0, EDGES), end)
    for first in range(begin, end, EDGES):
        edge, valid, node, ahead = et.next_edges(
            first, ahead, other, place, kept, end, EDGES
        )
        asked = tl.load(query + node * stride + inner, valid & real, 0.0).to(SUM)
        there = grad + node * channels * HEADS + inner
        given = tl.load(there, valid & real, 0.0).to(SUM)
        score = et.along_row(asked * own_key)
        log = tl.load(lse + node * HEADS + head, valid, 0.0)
        share = tl.where(valid, tl.exp(score - log), 0.0)
        total_value += share * given
        change = et.along_row(given * value)
        change -= tl.load(delta + node * HEADS + head, valid, 0.0)
        change *= share * scale
        total_key += change * asked
        where = tl.load(place + edge, edge < end, 0).to(tl.int64)
        here = where[None, None, :, None, None] * HEADS + head
        tl.store(grad_edges + here, change, valid & once)
    start = row * stride
    result = tl.sum(total_key, 2, keep_dims=True)
    tl.store(grad_key + start + inner, result, real)
    result = tl.sum(total_value, 2, keep_dims=True)
    tl.store(grad_values + start + inner, result, real)


def dot_forward(adjacency: Adjacency, packed: Tensor) -> tuple[Tensor, Tensor]:
    """Messages of the transformer's attention, and each row's log-sum-exp."""
    query, key, values = packed.unbind(1)
    nodes, channels, heads = values.shape
    out = values.new_empty(values.shape)
    exact = torch.promote_types(values.dtype, torch.float32)
    lse = values.new_empty((nodes, heads), dtype=exact)
    stride, scale = packed.stride(0), channels**-0.5
    given = (query, key, values, stride, scale, out, lse, channels)
    rest = (channels, given, sum_type(packed))
    over_rows(_dot_forward, "dot", et.by_target(adjacency), *rest, heads=heads)
    return out, lse


def dot_backward(
    adjacency: Adjacency, grad: Tensor, packed: Tensor, out: Tensor, lse: Tensor
) -> tuple[Tensor]:
    """The gradient of query, key and value."""
    query, key, values = packed.unbind(1)
    _, channels, heads = values.shape
    delta, grads = row_dots(grad, out, lse), torch.empty_like(packed)
    grad_query, grad_key, grad_values = grads.unbind(1)
    edges = lse.new_empty(adjacency.num_edges, heads)
    stride, scale = packed.stride(0), channels**-0.5
    given = (grad, lse, delta, query, key, values, stride, scale)
    made = (grad_key, grad_values, edges, channels)
    rest = (channels, given + made, sum_type(packed))
    over_rows(_dot_backward, "dot", et.by_source(adjacency), *rest, heads=heads)
    # The query's gradient is the sum of keys weighted by the scores' gradients.
    head_sum(et.by_target(adjacency), edges, key, grad_query)
    return (grads,)
