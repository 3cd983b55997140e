"""Exact k nearest neighbours on a CPU: tiles of float32 scores, selected in C++."""

import ctypes

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.blocks import Block, NearestLists
from ecg_gnn.evolve.exact.canonical import Operand, full_precision
from ecg_gnn.evolve.exact.ties import Proposal, Task, num_candidates
from ecg_gnn.kernels.compiled.building import call, library
from ecg_gnn.kernels.engine import current_engine

_TILE = 1024  # squared, these scores stay in a CPU's cache until they are selected
_ROOM_BYTES, _CANDIDATE_BYTES = 256 << 20, 8
_MOST_ROOM, _NODES_PER_CANDIDATE = 256, 32
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
    operand = Operand.of(task.canonical, task.canonical.mean())
    left, right = operand.left, operand.right()
    lists = _Lists(task, operand)
    size = min(task.block_size or _TILE, _TILE)
    buffer = left.new_empty(size * _TILE)
    parts = []
    num_nodes = task.canonical.num_nodes
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
            lists.offer(scores, rows.start, columns.start)
        parts.append(lists.decide(rows))
        task.progress(int(parts[-1].sure.sum()))
    return Proposal.join(parts)


class _Lists:
    """Of every row, the columns that may belong to its k best."""

    def __init__(self, task: Task, operand: Operand) -> None:
        self.task, self.error = task, operand.error(operand)
        self.constant = operand.constant
        num_nodes, k = task.canonical.num_nodes, task.k
        lowest = torch.finfo(torch.float32).min
        self.best = torch.full((num_nodes, k), lowest)
        shape = (num_nodes, _room(num_nodes, k))
        self.candidates = torch.empty(shape, dtype=torch.int64)
        self.count = torch.zeros(num_nodes, dtype=torch.int32)
        self.limit = torch.full((num_nodes,), lowest)
        self.slack = (_SLACK * self.error).clamp(max=_MOST_SLACK).float()

    def offer(self, scores: Tensor, first_row: int, first_column: int) -> None:
        """A tile of scores, for its rows and its columns."""
        lists = (self.best, self.candidates, self.count, self.limit, self.slack)
        sizes = (first_row, scores.size(0), first_column, scores.size(1))
        widths = (self.task.k, self.candidates.size(1))
        call(_library(), "ecg_offer_tile", *widths, *lists, scores, *sizes)

    def decide(self, rows: slice) -> Proposal:
        """Compare the candidates of ``rows`` exactly, all their tiles being offered."""
        task, error = self.task, self.error[rows]
        pairs = self.candidates[rows].view(torch.int32).unflatten(1, (-1, 2))
        score, column = pairs.unbind(2)
        # The lowest of the k best scores comes first. What is below it by more than
        # both their errors is below the k-th similarity.
        least = self.best[rows, 0] - 2 * error
        reached = score.view(torch.float32) >= least.unsqueeze(1)
        reached &= torch.arange(score.size(1)) < self.count[rows].unsqueeze(1)
        nodes = torch.arange(rows.start, rows.stop)
        found = NearestLists(nodes, task.canonical.take(rows), task.k, len(nodes))
        found.limit = self.limit[rows] + self.constant + error
        row, place = reached.nonzero(as_tuple=True)
        column = column[row, place].long()
        found.compare(nodes - rows.start, Block(0, task.canonical), row, column)
        neighbours, unsure = found.choose(task.key)
        sure = torch.ones(len(nodes), dtype=torch.bool).index_fill_(0, unsure, False)
        return Proposal(neighbours, sure)


def _room(num_nodes: int, k: int) -> int:
    """Candidates per row: few of all nodes, and at least some beyond k."""
    affordable = _ROOM_BYTES // (_CANDIDATE_BYTES * num_nodes)
    most = min(_MOST_ROOM, affordable, num_nodes // _NODES_PER_CANDIDATE)
    return max(2 * num_candidates(k), most)
