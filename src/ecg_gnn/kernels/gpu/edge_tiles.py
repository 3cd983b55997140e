"""Edges as Triton kernels read them: 32-bit, heavy nodes first, tile by tile."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language import constexpr

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.edge_order import Bucket, Order


class Pattern(NamedTuple):
    """One order of the edges; all but the last are a kernel's first arguments."""

    offsets: Tensor  # where each node's group begins, [N + 1]
    other: Tensor  # the opposite end point of every edge, [E]
    place: Tensor | None  # of an edge in target order; None: it is in that order
    kept: Tensor | None  # edges that survived DropEdge, in target order; None: all
    heavy_first: Tensor  # nodes by falling degree: the longest must not start last
    buckets: tuple[Bucket, ...]  # of heavy_first: long rows need more threads


def by_target(adjacency: Adjacency) -> Pattern:
    """Edges grouped by target."""
    return _pattern(adjacency.by_target, None, adjacency.kept)


def by_source(adjacency: Adjacency) -> Pattern:
    """Edges grouped by source: the transposed graph of the backward passes."""
    place = adjacency.by_target.compact_turning
    return _pattern(adjacency.by_source, place, adjacency.kept)


def _pattern(order: Order, place: Tensor | None, kept: Tensor | None) -> Pattern:
    kept = None if kept is None else kept.view(torch.uint8)
    ends = (order.compact.offsets, order.compact.other)
    return Pattern(*ends, place, kept, order.heavy_first, order.buckets)


@triton.jit
def group_of(program, offsets, heavy_first):
    """The node that a program computes, and where its edges begin and end."""
    row = tl.load(heavy_first + program).to(tl.int64)
    return row, tl.load(offsets + row), tl.load(offsets + row + 1)


@triton.jit
def still_there(edge, valid, place, kept):
    """Which of the valid edges DropEdge left."""
    if kept is not None:
        if place is not None:
            edge = tl.load(place + edge, valid, 0)
        valid &= tl.load(kept + edge, valid, 0) != 0
    return valid


@triton.jit
def neighbours(other, edge, end):
    """The opposite ends of some edges; zero beyond the last."""
    return tl.load(other + edge, edge < end, 0)


@triton.jit
def next_edges(first, ahead, other, place, kept, end, EDGES: constexpr):
    """One round of a node's edges, for tiles of ``row_places``.

    Returns the edges; which of them DropEdge left; their opposite ends, which were read
    a round ahead; and the next round's opposite ends.
    """
    edge = first + tl.arange(0, EDGES)
    valid = still_there(edge, edge < end, place, kept)[None, None, :, None, None]
    node = ahead.to(tl.int64)[None, None, :, None, None]
    return edge, valid, node, neighbours(other, edge + EDGES, end)


@triton.jit
def edges_by_head(first, other, place, kept, end, EDGES: constexpr):
    """The same without reading ahead, for tiles ``[EDGES, HEADS]``."""
    edge = first + tl.arange(0, EDGES)
    valid = still_there(edge, edge < end, place, kept)[:, None]
    return edge, valid, neighbours(other, edge, end).to(tl.int64)[:, None]


@triton.jit
def row_places(
    QUADS: constexpr, LANES: constexpr, REPS: constexpr, HEADS: constexpr, channels
):
    """Where the values of a row ``[C, H]`` lie: see ``launch.constants``.

    Returns places within the row; heads, repeated over the lanes; which channels exist;
    and which lane is the first, for what is stored once per edge.
    """
    quad = tl.arange(0, QUADS)[:, None, None, None, None]
    lane = tl.arange(0, LANES)[None, :, None, None, None]
    rep = tl.arange(0, REPS)[None, None, None, :, None]
    one = tl.arange(0, HEADS // QUADS)[None, None, None, None, :]
    channel = rep * LANES + lane
    head = quad * (HEADS // QUADS) + one
    heads = tl.broadcast_to(head, [QUADS, LANES, 1, 1, HEADS // QUADS])
    return channel * HEADS + head, heads, channel < channels, lane == 0


@triton.jit
def along_row(tile):
    """Sum over a row's channels, per edge and head: within a warp."""
    return tl.sum(tl.sum(tile, 3, keep_dims=True), 1, keep_dims=True)


LOWEST = tl.constexpr(-1e30)
"""Below every score, and finite: infinity minus infinity is not a number."""


@triton.jit
def merge_slots(highest, weight, AXIS: constexpr):
    """The highest score, and one over the sum of ``exp(score - highest)``.

    Apart, not as one logarithm: that would round away small differences of large
    scores. A row without edges gets zero for the second. The axis of the slots is kept.
    """
    top = tl.max(highest, AXIS, keep_dims=True)
    total = tl.sum(weight * tl.exp(highest - top), AXIS, keep_dims=True)
    return top, tl.where(total > 0, 1.0 / tl.where(total > 0, total, 1.0), 0.0)


@triton.jit
def log_sum(top, inverse):
    """The logarithm of a row's sum of exponentials; 0 for a row without edges."""
    some = inverse > 0
    return tl.where(some, top - tl.log(tl.where(some, inverse, 1.0)), 0.0)
