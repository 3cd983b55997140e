"""In which pieces a kernel takes its work: found by benchmarks/tune_kernels.py."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from ecg_gnn.kernels.gpu.pattern import Pattern

PROGRAMS = 264
"""Of kernels that sum over all rows: two for each of an H200's 132 processors."""
_ROW_TILE = 2048
# By how long the longest row is (more than 256 edges, more than 32, fewer): values of
# a tile, and how many of them a thread holds at least. Long rows take many warps, else
# a hub alone would take as long as everything else.
_TILES = {
    "sum": ((8192, 16), (2048, 32), (1024, 32)),
    "attention": ((8192, 16), (1024, 16), (1024, 32)),
    "dot": ((4096, 32), (1024, 32), (2048, 32)),
}
_MAX_WARPS = {"sum": 16, "attention": 8, "dot": 4}
_MAX_EDGES = 16


class Pieces(NamedTuple):
    """How a row's edges are taken: so many at a time, by so many warps."""

    edges: int
    warps: int


class Shape(NamedTuple):
    """How rows ``[C, H]`` lie in a tile ``[QUADS, LANES, EDGES, REPS, HEADS / QUADS]``.

    Triton hands out the last axis first, then the others from the front: a thread
    holds four heads, a warp the quads and lanes of one edge, further warps further
    edges, and the repeats are a thread's own. So what belongs to an edge is known to
    every thread that computes with it, sums over channels stay within a warp, and no
    warp waits for another.
    """

    quads: int
    lanes: int
    reps: int
    heads: int

    @property
    def width(self) -> int:
        """Values of one row, padded to a power of two."""
        return self.lanes * self.reps * self.heads


def shape_of(channels: int, heads: int, repeats: int = 1) -> Shape:
    """As many lanes as a warp has beside the quads.

    Args:
        channels: Of each head.
        heads: How many there are.
        repeats: Channels that a thread sums alone, at least, if there are so many:
            with fewer lanes an edge, a sum over channels needs fewer exchanges
            between them, and a warp works on several edges.
    """
    width, quads = next_power_of_2(channels), max(1, heads // 4)
    lanes = min(max(1, width // repeats), max(1, 32 // quads))
    return Shape(quads, lanes, width // lanes, heads)


def pieces(kind: str, width: int, highest: int) -> Pieces:
    """Edges at a time: as many as fill a tile, no more than the longest row has.

    Args:
        kind: ``sum``, ``attention`` or ``dot``.
        width: Values of one row, a power of two.
        highest: The highest degree.
    """
    size, per_thread = _TILES[kind][0 if highest > 256 else 1 if highest > 32 else 2]
    most = min(_MAX_EDGES, next_power_of_2(max(1, highest)))
    edges = max(1, min(size // width, most))
    warps = max(1, edges * width // (32 * per_thread))
    return Pieces(edges, min(next_power_of_2(warps), edges, _MAX_WARPS[kind]))


def over_rows(
    kernel: Any,
    kind: str,
    pattern: "Pattern",
    width: int,
    given: Sequence[Any],
    rest: Sequence[Any],
) -> None:
    """Run a kernel for every node, long rows first and by more threads.

    Args:
        kernel: Takes the pattern, the first row, what is given, edges at a time, rest.
        kind: See ``pieces``.
        pattern: The edges.
        width: Values of one row, a power of two.
        given: Its tensors and numbers.
        rest: Its constants.
    """
    with torch.cuda.device_of(pattern.offsets):  # Triton launches on the current one
        for bucket in pattern.buckets:
            size = pieces(kind, width, bucket.highest)
            fixed = (*pattern[:-1], bucket.first, *given, size.edges, *rest)
            kernel[(bucket.nodes,)](*fixed, num_warps=size.warps)


def row_tiles(channels: int) -> tuple[int, int]:
    """Rows at a time and their width, for kernels that go over whole rows."""
    width = next_power_of_2(channels)
    return max(1, _ROW_TILE // width), width


def next_power_of_2(number: int) -> int:
    """Tiles have sizes that are powers of two; the rest is masked."""
    return 1 << max(0, number - 1).bit_length()
