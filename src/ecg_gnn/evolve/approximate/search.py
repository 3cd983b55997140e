"""k nearest neighbours by an index: candidates from it, order and ties from us."""

import math
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.approximate.cells import Cells
from ecg_gnn.evolve.approximate.groups import Candidates, Groups, choose_nodes
from ecg_gnn.evolve.approximate.index import Index, Kind
from ecg_gnn.evolve.approximate.recall import Truth
from ecg_gnn.evolve.approximate.sizes import exact_tile, rows_at_a_time
from ecg_gnn.evolve.canonical import Canonical
from ecg_gnn.evolve.streamed.pieces import HeldPieces
from ecg_gnn.evolve.streamed.search import search_nodes
from ecg_gnn.evolve.task import Task, num_candidates
from ecg_gnn.system.seeds import derive_seed

RECALL = 0.95
"""What is aimed at; the effort grows until some rows reach a little more."""
_MARGIN = 0.02
SAMPLE = 1_000
"""Rows on which the recall is measured, and fewer others to choose the effort by."""
_TUNED_ON = 256
_GROWTH = 1.4
"""Of the effort, until enough is found."""


class Approximate(NamedTuple):
    """Neighbours [N, k] that need not be the nearest, and how many of them are."""

    neighbours: Tensor
    recall: float


def search_approximately(task: Task, kind: Kind, seed: int) -> Approximate:
    """Neighbours of all nodes by an index; what they are is a matter of the seed."""
    canonical, k = task.canonical, task.k
    search = _Search(task, Groups(canonical.grid), kind, seed)
    generator = torch.Generator().manual_seed(derive_seed(seed, "recall"))
    order = torch.randperm(canonical.num_nodes, generator=generator)
    order = order.to(canonical.grid.device)
    search.tune(Truth(canonical, order[-_TUNED_ON:], k))
    neighbours = search.all_neighbours()
    measured = order[:SAMPLE].sort().values
    recall = Truth(canonical, measured, k).recall(neighbours[measured])
    if recall < RECALL:
        warnings.warn(
            f"the {kind} search finds {recall:.1%} of the nearest neighbours, less "
            f"than {RECALL:.0%}: --knn exact finds all",
            stacklevel=2,
        )
    return Approximate(neighbours, recall)


def runs_on_gpu(kind: Kind, device: str) -> bool:
    """Whether rows on a device are searched there; else faiss has them in memory."""
    return kind == "ivf" and device == "cuda"


class _Search:
    def __init__(self, task: Task, groups: Groups, kind: Kind, seed: int) -> None:
        self.task, self.groups, self.k = task, groups, task.k
        self.rows: Canonical = task.canonical.take(groups.leaders)
        of_index = derive_seed(seed, "index")
        self.index: Index | Cells
        if runs_on_gpu(kind, task.canonical.grid.device.type):
            self.index = Cells(self.rows, of_index)
        else:
            self.index = Index(kind, self.rows, of_index)

    def tune(self, truth: Truth) -> None:
        """Raise the effort until enough of the true neighbours are candidates."""
        own, place = torch.unique(self.groups.of_node[truth.nodes], return_inverse=True)
        while self._recall(self._candidates(own), place, truth) < RECALL + _MARGIN:
            if self.index.effort >= self.index.most:
                return
            more = math.ceil(_GROWTH * self.index.effort)
            self.index.effort = min(more, self.index.most)

    def _recall(self, candidates: Candidates, place: Tensor, truth: Truth) -> float:
        near = candidates.scores[place] >= truth.kth.unsqueeze(1)
        sizes = self.groups.sizes[candidates.groups[place]]
        is_own = candidates.groups[place] == candidates.own[place].unsqueeze(1)
        hits = ((sizes - is_own.long()) * near).sum(1).clamp(max=self.k)
        return float(hits.double().mean()) / self.k

    def all_neighbours(self) -> Tensor:
        """Neighbours of all nodes [N, k]; where there are too few candidates, exact."""
        num_nodes = self.task.canonical.num_nodes
        found = self.index.order.new_empty((num_nodes, self.k))
        size = rows_at_a_time(num_candidates(self.k), on_gpu=found.is_cuda)
        lacking = []
        for own in self.index.order.split(size):
            candidates = self._candidates(own)
            kth = candidates.kth(self.k, self.groups.sizes)
            enough = kth > -torch.inf
            lacking.append(own[~enough])
            some = candidates.take(enough.nonzero().squeeze(1))
            for nodes, neighbours in choose_nodes(
                self.groups, some, kth[enough], self.k, self.task.key
            ):
                found[nodes] = neighbours
                self.task.progress(nodes.numel())
        nodes, _ = self.groups.nodes_of(torch.cat(lacking))
        for some_nodes in nodes.split(size):
            found[some_nodes] = self._exactly(some_nodes)
            self.task.progress(some_nodes.numel())
        return found

    def _candidates(self, own: Tensor) -> Candidates:
        count = min(num_candidates(self.k) + 1, self.rows.num_nodes)
        found = self.index.search(own, count)
        groups = torch.cat([found, own.unsqueeze(1)], 1).sort(1).values
        absent = groups < 0
        absent[:, 1:] |= groups[:, 1:] == groups[:, :-1]  # itself, a second time
        groups = groups.where(~absent, own.unsqueeze(1))
        scores = self.rows.pair_scores(own, groups)
        return Candidates(own, groups, scores.masked_fill_(absent, -torch.inf))

    def _exactly(self, nodes: Tensor) -> Tensor:
        canonical = self.task.canonical
        return search_nodes(
            nodes,
            canonical.take(nodes),
            self.k,
            self.task.key,
            HeldPieces(canonical),
            exact_tile(on_gpu=nodes.is_cuda),
        )
