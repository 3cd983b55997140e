"""Exact k nearest neighbours: a fast float32 search that knows when it is certain.

Four ways lead to the same set, the one that `canonical` and `ties` define:

1. the float32 scores alone, where the k-th and the next differ by more than their
   error;
2. exact similarities of a few more than k candidates, where these provably suffice;
3. the same again inside clusters, where scores are more precise;
4. exact similarities with all nodes that can matter, for what is left.

Scores are symmetric, so each block is computed once and serves its rows and,
transposed, its columns: half the multiplications of a plain blocked search.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ecg_gnn.evolve.approximation import Approximation
from ecg_gnn.evolve.closer import search_closer
from ecg_gnn.evolve.compiled import search as compiled
from ecg_gnn.evolve.exact import search_groups, search_pruned
from ecg_gnn.evolve.gpu import usable as gpu
from ecg_gnn.evolve.precision import full_precision
from ecg_gnn.evolve.task import Task, num_candidates
from ecg_gnn.evolve.ties import Boundary
from ecg_gnn.kernels.distinct_rows import distinct_rows

_MAX_ROWS = 2048
_COLUMN_CHUNK = 1024


def nearest(task: Task) -> Tensor:
    """The ``k`` most similar other nodes of every node, ascending ids: [N, k]."""
    num_nodes = task.canonical.num_nodes
    groups = distinct_rows(task.canonical.grid)
    # Few distinct rows: their exact similarities cost less than one float32 search.
    if (
        4 * int(groups.max() + 1) <= num_nodes
        or num_candidates(task.k) >= num_nodes - 1
    ):
        nodes = torch.arange(num_nodes, device=groups.device)
        return search_groups(task, groups, nodes)
    found, sure, floor = _propose(task)
    left = (~sure).nonzero().squeeze(1)
    if left.numel():
        num_distinct = torch.unique(groups[left]).numel()
        if 4 * num_distinct < left.numel():
            found[left] = search_groups(task, groups, left)
        else:
            found[left] = _search_hard(task, left, floor[left])
    return found


def _search_hard(task: Task, nodes: Tensor, floor: Tensor) -> Tensor:
    found, sure = search_closer(task, nodes, floor, _propose)
    left = (~sure).nonzero().squeeze(1)
    if left.numel():
        found[left] = search_pruned(task, nodes[left], floor[left])
    return found


def _propose(task: Task) -> tuple[Tensor, Tensor, Tensor]:
    if gpu.usable(task):
        from ecg_gnn.evolve.gpu.search import search_tiled

        return search_tiled(task)
    return (
        compiled.search_compiled(task) if compiled.usable(task) else search_fast(task)
    )


def search_fast(task: Task) -> tuple[Tensor, Tensor, Tensor]:
    """Neighbours from float32 scores: [N, k], which of them are proven right [N].

    And, for those that are not, a floor of the k-th similarity [N].
    """
    approximation = Approximation.of(task.canonical)
    num_nodes, device = task.canonical.num_nodes, task.canonical.grid.device
    best = _Best(num_nodes, num_candidates(task.k), device)
    found = torch.empty((num_nodes, task.k), dtype=torch.long, device=device)
    sure = torch.empty(num_nodes, dtype=torch.bool, device=device)
    floor = torch.empty(num_nodes, dtype=torch.float64, device=device)
    for start, stop in _score_blocks(task, approximation, best):
        part = slice(start, stop)
        nodes = torch.arange(start, stop, device=device)
        values, ids = best.sorted(part)
        values = values.double() + approximation.offset
        bound = approximation.bound[part]
        found[part], sure[part] = _resolve(task, nodes, values, ids, bound)
        floor[part] = values[:, task.k - 1] - bound
        task.progress(int(sure[part].sum()))
    return found, sure, floor


def _resolve(
    task: Task, nodes: Tensor, values: Tensor, ids: Tensor, bound: Tensor
) -> tuple[Tensor, Tensor]:
    k = task.k
    sure = values[:, k - 1] - values[:, k] > 2 * bound
    found = task.named(ids[:, :k]).sort(1).values
    unsure = (~sure).nonzero().squeeze(1)
    if unsure.numel():
        candidates = ids[unsure].sort(1).values
        scores = task.canonical.pair_scores(nodes[unsure], candidates)
        threshold = scores.topk(k, sorted=False).values.amin(1)
        boundary = Boundary.at(scores, threshold, task.named(candidates))
        row = torch.arange(unsure.numel(), device=ids.device)
        own = task.named(nodes[unsure])
        found[unsure] = boundary.choose(k, task.key, own, row, None)
        # Nobody outside the candidates reaches the k-th similarity, not even as a tie.
        sure[unsure] = threshold > values[unsure, -1] + bound[unsure]
    return found, sure


class _Best:
    """The best candidates of every node so far."""

    def __init__(self, num_nodes: int, width: int, device: torch.device) -> None:
        self.width = width
        self.values = torch.full((num_nodes, width), -torch.inf, device=device)
        self.ids = torch.zeros((num_nodes, width), dtype=torch.long, device=device)

    def update(self, start: int, scores: Tensor, first_id: int) -> None:
        """Offer nodes from ``start`` on their scores with ids from ``first_id`` on."""
        values, ids = scores.topk(min(self.width, scores.size(1)), sorted=False)
        rows = slice(start, start + scores.size(0))
        values = torch.cat([self.values[rows], values], 1)
        ids = torch.cat([self.ids[rows], ids + first_id], 1)
        self.values[rows], kept = values.topk(self.width, sorted=False)
        self.ids[rows] = ids.gather(1, kept)

    def sorted(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Values and ids of some nodes, best first."""
        values, order = self.values[rows].sort(1, descending=True)
        return values, self.ids[rows].gather(1, order)


def _score_blocks(
    task: Task, approximation: Approximation, best: _Best
) -> Iterator[tuple[int, int]]:
    """Fill ``best``; yield each range of nodes once nothing better can come."""
    num_nodes = task.canonical.num_nodes
    left, right = approximation.left, approximation.right
    block = task.rows_per_block(left.element_size(), _MAX_ROWS)
    buffer = left.new_empty(block * num_nodes)
    for start in range(0, num_nodes, block):
        stop = min(start + block, num_nodes)
        shape = (stop - start, num_nodes - start)
        scores = buffer[: shape[0] * shape[1]].view(shape)
        with full_precision(left.device):
            torch.mm(left[start:stop], right[start:].t(), out=scores)
        scores.diagonal().fill_(-torch.inf)  # itself
        best.update(start, scores, start)
        yield start, stop
        # In pieces that a CPU's cache holds; a GPU pays per piece instead.
        width = num_nodes if left.is_cuda else _COLUMN_CHUNK
        for column in range(stop, num_nodes, width):
            part = scores[:, column - start : column - start + width]
            best.update(column, part.t().contiguous(), start)
