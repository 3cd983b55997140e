"""Exact k nearest neighbours on a CPU: tiles of float32 scores, selected in C++."""

import ctypes

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import GRID_BITS, Operand, full_precision
from ecg_gnn.evolve.exact.ties import Decision, Proposal, Task, num_candidates, settle
from ecg_gnn.kernels.compiled import call, fields_of, library
from ecg_gnn.kernels.engine import current_engine

_TILE = 1024  # squared, these scores stay in a CPU's cache until they are selected
_ROOM_BYTES, _CANDIDATE_BYTES = 256 << 20, 8
_MOST_ROOM, _NODES_PER_CANDIDATE = 256, 32
_INT, _REAL, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p
# More than the error bound by what real errors may be; finite where there is no bound.
_SLACK, _MOST_SLACK = 1.25, 1e30


def usable(task: Task) -> bool:
    """Whether the C++ search takes this task."""
    on_cpu = task.canonical.grid.device.type == "cpu"
    return on_cpu and current_engine() == "fast" and _library() is not None


def _library() -> ctypes.CDLL | None:
    return library("ecg_gnn.evolve.exact", "search")


def search_compiled(task: Task) -> Proposal:
    """The neighbours of all nodes, as far as float32 can prove them.

    Scores are symmetric, so each tile is computed once and serves its rows and,
    transposed, its columns: half the multiplications of a plain blocked search.
    """
    mean = task.canonical.mean()
    operand = Operand.of(task.canonical, mean)
    left, right = operand.left, operand.right()
    lists = _Lists(task, operand.error(operand), task.canonical.offset(mean))
    size = min(task.block_size or _TILE, _TILE)
    buffer = left.new_empty(size * _TILE)
    parts = []
    num_nodes = task.canonical.num_nodes
    for start in range(0, num_nodes, size):
        stop = min(start + size, num_nodes)
        rows, others = slice(start, stop), range(stop, num_nodes, _TILE)
        # The diagonal tile first, then to its right. What lies to its left served the
        # rows as columns of earlier tiles.
        right_of = [slice(first, min(first + _TILE, num_nodes)) for first in others]
        for columns in [rows, *right_of]:
            shape = (rows.stop - rows.start, columns.stop - columns.start)
            scores = buffer[: shape[0] * shape[1]].view(shape)
            with full_precision(left.device):
                torch.mm(left[rows], right[columns].t(), out=scores)
            lists.offer(scores, rows.start, columns.start)
        parts.append(settle(task, rows.start, lists.decide(rows)))
        task.progress(int(parts[-1].sure.sum()))
    return Proposal(*(torch.cat(some) for some in zip(*parts, strict=True)))


class _CLists(ctypes.Structure):
    """``Lists`` of search.cpp."""

    _fields_ = fields_of(
        (_INT, "k room"), (_ARRAY, "best candidates count limit slack")
    )


class _CRows(ctypes.Structure):
    """``Rows`` of search.cpp."""

    _fields_ = fields_of((_INT, "num_nodes width"), (_ARRAY, "grid half_square"))
    _fields_ += fields_of((_REAL, "step"), (_ARRAY, "bound"), (_REAL, "offset"))


class _CDecision(ctypes.Structure):
    """``Decision`` of search.cpp."""

    _fields_ = fields_of((_ARRAY, " ".join(Decision._fields)))


class _Lists:
    """Of every row, the columns that may belong to its k best."""

    def __init__(self, task: Task, bound: Tensor, offset: float) -> None:
        canonical = task.canonical
        (num_nodes, width), k = canonical.grid.shape, task.k
        self.k, self.room = k, _room(num_nodes, k)
        slack = (_SLACK * bound).clamp(max=_MOST_SLACK).float()
        lowest = torch.finfo(torch.float32).min
        memory = [
            torch.full((num_nodes, k), lowest),
            torch.empty((num_nodes, self.room), dtype=torch.int64),
            torch.zeros(num_nodes, dtype=torch.int32),
            torch.full((num_nodes,), lowest),
            slack,
        ]
        grid, half_square = canonical.grid.contiguous(), canonical.half_square
        self.lists = _CLists(k, self.room, *(part.data_ptr() for part in memory))
        squares = half_square.data_ptr() if canonical.euclidean else None
        step, bounds = 2.0**-GRID_BITS, bound.data_ptr()
        where = (grid.data_ptr(), squares, step, bounds, offset)
        self.rows = _CRows(num_nodes, width, *where)
        # What the structures point to lives as long as they do.
        self.memory = [*memory, grid, bound, half_square]

    def offer(self, scores: Tensor, first_row: int, first_column: int) -> None:
        """A tile of scores, for its rows and its columns."""
        sizes = (first_row, scores.size(0), first_column, scores.size(1))
        call(_library(), "ecg_offer_tile", self.lists, scores, *sizes)

    def decide(self, rows: slice) -> Decision:
        """Compare the candidates of ``rows`` exactly, all their tiles being offered."""
        size = rows.stop - rows.start
        decision = Decision.empty(size, self.room, self.k, torch.device("cpu"))
        out = _CDecision(*(part.data_ptr() for part in decision))
        given = (self.lists, self.rows, out, rows.start, size)
        call(_library(), "ecg_decide", *given)
        return decision


def _room(num_nodes: int, k: int) -> int:
    """Candidates per row: few of all nodes, and at least some beyond k."""
    affordable = _ROOM_BYTES // (_CANDIDATE_BYTES * num_nodes)
    most = min(_MOST_ROOM, affordable, num_nodes // _NODES_PER_CANDIDATE)
    return max(2 * num_candidates(k), most)
