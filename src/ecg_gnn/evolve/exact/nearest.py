"""Exact k nearest neighbours: a fast search that knows when it is certain.

1. Float32 scores propose candidates, and bound the similarity of everybody else.
2. Exact similarities decide among the candidates. Where the k-th is above that bound,
   the row is certain: nobody else can be among its k nearest, nor tie with the last.
3. Rows that are not certain are compared with all nodes exactly; so are all rows where
   few of them are distinct.

Whatever proposes the candidates, the neighbours are those that `canonical` and `ties`
define.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.evolve.exact import compiled
from ecg_gnn.evolve.exact.canonical import Canonical, FloatScores, full_precision
from ecg_gnn.evolve.exact.ties import choose, num_candidates
from ecg_gnn.kernels.hashing import distinct_rows, first_of_group
from ecg_gnn.system.seeds import derive_seed


@dataclass(frozen=True)
class Search:
    """For the ``k`` most similar other nodes of every node of ``canonical``."""

    canonical: Canonical
    k: int
    seed: int
    num_rows: int = 1024  # of scores with all nodes, to hold at a time
    report: Callable[[int], None] = lambda count: None  # told how many just finished

    @property
    def key(self) -> int:
        """Seeds the random choice among ties."""
        return derive_seed(self.seed, "knn-ties")


def nearest(search: Search) -> Tensor:
    """The ``k`` most similar other nodes of every node, ascending: [N, k]."""
    canonical, k = search.canonical, search.k
    num_nodes, device = canonical.num_nodes, canonical.grid.device
    groups = distinct_rows(canonical.grid)
    nodes = torch.arange(num_nodes, device=device)
    # Few distinct rows: their exact similarities cost less than float32 scores of all.
    few = 4 * int(groups.max() + 1) <= num_nodes
    if few or num_candidates(k) >= num_nodes - 1:
        return search_exactly(search, groups, nodes)
    floats = FloatScores.of(canonical)
    propose = compiled.propose if compiled.usable(device) else propose_candidates
    neighbours = nodes.new_empty((num_nodes, k))
    certain = torch.empty_like(nodes, dtype=torch.bool)
    for rows, candidates, others in propose(floats, k, search.num_rows):
        limit = others.double() + floats.constant + floats.error[rows]
        neighbours[rows], kth = decide(search, nodes[rows], candidates)
        certain[rows] = kth > limit
        search.report(int(certain[rows].sum()))
    left = (~certain).nonzero().squeeze(1)
    if left.numel():
        neighbours[left] = search_exactly(search, groups, left)
    return neighbours


def propose_candidates(
    floats: FloatScores, k: int, num_rows: int
) -> Iterator[tuple[slice, Tensor, Tensor]]:
    """Candidates for some rows after another, and the best score of all others.

    Yields a slice of the rows, their candidates [n, c] and those scores [n]. In plain
    torch, for GPUs and where there is no compiler.
    """
    num_nodes, count = len(floats.left), num_candidates(k)
    for start in range(0, num_nodes, num_rows):
        rows = slice(start, min(start + num_rows, num_nodes))
        with full_precision(floats.left.device):
            scores = floats.left[rows] @ floats.right.t()
        scores.diagonal(start).fill_(-torch.inf)
        best, candidates = scores.topk(count + 1)
        yield rows, candidates[:, :-1], best[:, -1]


def decide(search: Search, nodes: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest of the candidates [n, c] and the k-th similarity: [n, k] and [n].

    It is minus infinity where fewer than k candidates are not ``NOBODY``.
    """
    candidates = candidates.sort(1).values  # the draw goes by rank among ascending ids
    scores = search.canonical.candidate_scores(nodes, candidates)
    kth = scores.topk(search.k).values[:, -1]
    return choose(search.k, search.key, nodes, scores, kth, candidates), kth


def search_exactly(search: Search, groups: Tensor, nodes: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n] by their exact similarities with everybody: [n, k].

    Nodes with equal rows, by ``groups`` [N], share their similarities; only the draw
    among ties is their own. So a constant embedding of any size costs one row of
    scores.
    """
    canonical, k = search.canonical, search.k
    everybody = first_of_group(groups)
    wanted, group = torch.unique(groups[nodes], return_inverse=True)
    ids = torch.arange(canonical.num_nodes, device=nodes.device)
    neighbours = nodes.new_empty((nodes.numel(), k))
    for start in range(0, wanted.numel(), search.num_rows):
        leaders = everybody[wanted[start : start + search.num_rows]]
        scores = canonical.scores(leaders, everybody)[:, groups]
        place = leaders.unsqueeze(1)
        value = scores.gather(1, place)
        scores.scatter_(1, place, -torch.inf)
        kth = scores.topk(k, sorted=False).values.amin(1)
        # Back in: another node with the same row leaves out its own column instead.
        scores.scatter_(1, place, value)
        row = group - start
        asked = ((row >= 0) & (row < leaders.numel())).nonzero().squeeze(1)
        given = (nodes[asked], scores, kth, ids.expand_as(scores), row[asked])
        neighbours[asked] = choose(k, search.key, *given)
        search.report(asked.numel())
    return neighbours
