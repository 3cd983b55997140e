"""Candidates for nearest neighbours on a CPU: float32 scores, selected in C++."""

import ctypes
from collections.abc import Iterator

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import NOBODY, FloatScores, full_precision
from ecg_gnn.evolve.exact.ties import num_candidates
from ecg_gnn.kernels.compiled.building import call, library
from ecg_gnn.kernels.engine import current_engine

_TILE = 1024  # squared, these scores stay in a CPU's cache until they are selected
_ROOM_BYTES, _CANDIDATE_BYTES = 256 << 20, 8
_MOST_ROOM, _NODES_PER_CANDIDATE = 256, 32
# More than the error bound by what real errors may be; finite where there is no bound.
_SLACK, _MOST_SLACK = 1.25, 1e30


def usable(device: torch.device) -> bool:
    """Whether the C++ selection runs there."""
    on_cpu = device.type == "cpu"
    return on_cpu and current_engine() == "fast" and _library() is not None


def _library() -> ctypes.CDLL | None:
    return library("ecg_gnn.evolve.exact", "search")


def propose(
    floats: FloatScores, k: int, num_rows: int
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """As ``propose_candidates``, with half the multiplications.

    Scores are symmetric, so each tile is computed once and serves its rows and,
    transposed, its columns. Of every row, the columns are kept that may belong to its
    k best.
    """
    left, right, error = floats.left, floats.right, floats.error
    num_nodes, room = len(left), _room(len(left), k)
    lowest = torch.finfo(torch.float32).min
    best, limit = (torch.full(s, lowest) for s in ((num_nodes, k), (num_nodes,)))
    kept = torch.empty((num_nodes, room), dtype=torch.int64)  # a score and a column
    count = torch.zeros(num_nodes, dtype=torch.int32)
    slack = (_SLACK * error).clamp(max=_MOST_SLACK).float()
    lists = (k, room, best, kept, count, limit, slack)
    # A tile holds no more scores than so many rows have with all nodes.
    size = max(1, min(_TILE, num_rows * num_nodes // _TILE))
    buffer = left.new_empty(size * _TILE)
    for start in range(0, num_nodes, size):
        rows = slice(start, min(start + size, num_nodes))
        # The diagonal tile first, then to its right. What lies to its left served the
        # rows as columns of earlier tiles.
        others = range(rows.stop, num_nodes, _TILE)
        right_of = [slice(first, min(first + _TILE, num_nodes)) for first in others]
        for columns in [rows, *right_of]:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            scores = buffer[: shape[0] * shape[1]].view(shape)
            with full_precision(left.device):
                torch.mm(left[rows], right[columns].t(), out=scores)
            tile = (scores, rows.start, shape[0], columns.start, shape[1])
            call(_library(), "ecg_offer_tile", *lists, *tile)
        most = max(k, int(count[rows].max()))
        halves = kept[rows, :most].view(torch.int32).unflatten(1, (-1, 2))
        score, column = halves.unbind(2)
        # The lowest of the k best scores comes first. What is below it by more than
        # both their errors is below the k-th similarity.
        least = (best[rows, 0] - 2 * error[rows]).unsqueeze(1)
        reached = score.view(torch.float32) >= least
        reached &= torch.arange(most) < count[rows].unsqueeze(1)
        candidates = column.long().masked_fill(~reached, NOBODY)
        yield rows, candidates, limit[rows]


def _room(num_nodes: int, k: int) -> int:
    """Candidates per row: few of all nodes, and at least some beyond k."""
    affordable = _ROOM_BYTES // (_CANDIDATE_BYTES * num_nodes)
    most = min(_MOST_ROOM, affordable, num_nodes // _NODES_PER_CANDIDATE)
    return max(2 * num_candidates(k), most)
