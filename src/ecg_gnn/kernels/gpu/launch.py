"""In which pieces a kernel takes its work: found by benchmarks/tune_kernels.py."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from ecg_gnn.kernels.gpu.edge_tiles import Pattern

PROGRAMS = 264
"""Of kernels that sum over all rows: two for each of an H200's 132 processors."""
_ROW_TILE = 2048
_MAX_EDGES = 16


class Tile(NamedTuple):
    """How much a program and a thread take at a time.

    With more repeats an edge has fewer lanes: sums over its channels need fewer
    exchanges between them, and a warp works on several edges, which short rows lack.
    """

    values: int
    per_thread: int  # values of the tile that a thread holds, at least
    repeats: int = 1
    """Channels of an edge that a thread holds, at least, if there are so many"""


# By how long the longest row is: more than 256 edges, more than 32, fewer. Long rows
# take many warps, else a hub alone would take as long as everything else.
_TILES = {
    "sum": (Tile(8192, 16), Tile(2048, 32), Tile(1024, 32)),
    "attention": (Tile(8192, 16), Tile(1024, 16), Tile(1024, 32)),
    "dot": (Tile(4096, 32, 8), Tile(1024, 32, 8), Tile(1024, 32)),
}
_MAX_WARPS = {"sum": 16, "attention": 8, "dot": 8}


def constants(
    kind: str, channels: int, heads: int | None, highest: int
) -> tuple[tuple[int, ...], int]:
    """Edges at a time and the width of a row or, with heads, its shape; and warps.

    Edges are as many as fill a tile, but not more than the ``highest`` degree.

    Rows ``[C, H]`` lie in a tile ``[QUADS, LANES, EDGES, REPS, HEADS / QUADS]``. Triton
    hands out the last axis first, then the others from the front: a thread holds four
    heads, a warp the quads and lanes of one edge, further warps further edges, and the
    repeats are a thread's own. So what belongs to an edge is known to every thread that
    computes with it, sums over channels stay within a warp, and no warp waits for
    another.
    """
    tile, width = _tile(kind, highest), next_power_of_2(channels)
    shape: tuple[int, ...] = (width,)
    if heads is not None:
        quads = max(1, heads // 4)
        # As many lanes as a warp has beside the quads.
        lanes = min(max(1, width // tile.repeats), max(1, 32 // quads))
        shape = (quads, lanes, width // lanes, heads)
        width *= heads
    most = min(_MAX_EDGES, next_power_of_2(max(1, highest)))
    edges = max(1, min(tile.values // width, most))
    warps = max(1, edges * width // (32 * tile.per_thread))
    return (edges, *shape), min(next_power_of_2(warps), edges, _MAX_WARPS[kind])


def _tile(kind: str, highest: int) -> Tile:
    return _TILES[kind][0 if highest > 256 else 1 if highest > 32 else 2]


def over_rows(
    kernel: Any,
    kind: str,
    pattern: "Pattern",
    channels: int,
    given: Sequence[Any],
    sum_type: Any,
    *,
    heads: int | None = None,
) -> None:
    """Run a kernel for every node, long rows first and by more threads.

    It takes the pattern, the first row, what is given, the constants and the type of
    sums.
    """
    with torch.cuda.device_of(pattern.offsets):  # Triton launches on the current one
        for bucket in pattern.buckets:
            sizes, warps = constants(kind, channels, heads, bucket.highest)
            start = (*pattern[:-1], bucket.first)
            grid = (bucket.nodes,)
            kernel[grid](*start, *given, *sizes, sum_type, num_warps=warps)


def row_tiles(channels: int) -> tuple[int, int]:
    """Rows at a time and their width, for kernels that go over whole rows."""
    width = next_power_of_2(channels)
    return max(1, _ROW_TILE // width), width


def next_power_of_2(number: int) -> int:
    """Tiles have sizes that are powers of two; the rest is masked."""
    return 1 << max(0, number - 1).bit_length()
