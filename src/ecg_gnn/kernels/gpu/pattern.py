"""Edges as Triton kernels read them: 32-bit, heavy nodes first."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.order import Bucket, Order


class Pattern(NamedTuple):
    """One order of the edges; all but the last are a kernel's first arguments.

    Attributes:
        offsets: Where each node's group begins. ``[N + 1]``
        other: The opposite end point of every edge. ``[E]``
        place: The edge's place in target order; None where it is in that order.
        kept: Edges that survived DropEdge, in target order; None keeps all.
        heavy_first: Nodes by falling degree: the longest rows must not start last.
        buckets: Parts of ``heavy_first``: long rows need more threads than short ones.
    """

    offsets: Tensor
    other: Tensor
    place: Tensor | None
    kept: Tensor | None
    heavy_first: Tensor
    buckets: tuple[Bucket, ...]


def by_target(adjacency: Adjacency) -> Pattern:
    """Edges grouped by target."""
    return _pattern(adjacency.by_target, None, adjacency.kept)


def by_source(adjacency: Adjacency) -> Pattern:
    """Edges grouped by source: the transposed graph of the backward passes."""
    place = adjacency.by_source.compact("place", adjacency.by_source_order)
    return _pattern(adjacency.by_source, place, adjacency.kept)


def _pattern(order: Order, place: Tensor | None, kept: Tensor | None) -> Pattern:
    return Pattern(
        order.compact("offsets", order.offsets),
        order.compact("other", order.other),
        place,
        None if kept is None else kept.view(torch.uint8),
        order.heavy_first,
        order.buckets,
    )


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
def row_places(
    QUADS: tl.constexpr,
    LANES: tl.constexpr,
    REPS: tl.constexpr,
    HEADS: tl.constexpr,
    channels,
):
    """Where the values of a row ``[C, H]`` lie: see ``launch.Shape``.

    Returns:
        Places within the row; heads, repeated over the lanes; which channels exist;
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
