"""Which of several equally similar nodes become neighbours: a rule, not an accident.

For node u, everything more similar than the k-th value is in; the remaining r places go
to a uniformly random r-subset of the m nodes tied at that value. The draw depends on
(seed, u, m, r) alone and uses integers only, so every device and block size agrees.

A fast search *proposes*: it compares scores whose error is bounded, then the exact
similarities of a few candidates. A row is proven if no other node can be among its k
nearest; rows that are not are left to a slower search.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import Canonical
from ecg_gnn.kernels.hashing import mix, shift_right

NOBODY = (1 << 63) - 1
"""A placeholder that sorts after every node."""


def num_candidates(k: int) -> int:
    """How many candidates per node a search keeps: k and room for near ties."""
    return k + max(8, k // 2)


def random_ranks(key: int, nodes: Tensor, pool: Tensor, picks: Tensor) -> Tensor:
    """For each node, ``picks`` distinct ranks below ``pool``, uniformly: [n, max].

    Floyd's algorithm: r steps and no shuffle of the pool. Unused places hold -1.
    """
    width = int(picks.max()) if picks.numel() else 0
    stream = mix(mix(torch.full_like(nodes, key)) + nodes)
    chosen = nodes.new_full((nodes.numel(), width), -1)
    for step in range(width):
        last = pool - picks + step
        # The upper 32 bits times (last + 1), over 2^32: uniform up to 2^-32 * pool.
        draw = (shift_right(mix(stream + last), 32) * (last + 1)) >> 32
        taken = (chosen[:, :step] == draw.unsqueeze(1)).any(1)
        draw = torch.where(taken, last, draw)
        chosen[:, step] = torch.where(step < picks, draw, -1)
    return chosen


@dataclass(frozen=True)
class Boundary:
    """Per row, which columns lie above the k-th similarity and which at it."""

    above: Tensor  # [b, C] bool
    tied: Tensor  # [b, C] bool
    ids: Tensor  # [C] or [b, C] node of each column, ascending

    @classmethod
    def at(cls, scores: Tensor, threshold: Tensor, ids: Tensor) -> "Boundary":
        """Split ``scores`` [b, C] at ``threshold`` [b]."""
        limit = threshold.unsqueeze(1)
        return cls(scores > limit, scores == limit, ids)

    def choose(
        self, k: int, key: int, nodes: Tensor, row: Tensor, own: Tensor | None
    ) -> Tensor:
        """The ``k`` neighbours of each of ``nodes`` [n], ascending: [n, k].

        Identical nodes may share a ``row`` [n]. Each node's ``own`` column [n] is left
        out; None where rows do not contain it. The draw among ties is by ``key``.
        """
        certain = self._above_ids(k)[row]  # [n, k]
        certain[certain == nodes.unsqueeze(1)] = NOBODY
        picks = k - (certain != NOBODY).sum(1)
        places = self.tied.flatten().nonzero().squeeze(1)  # ascending
        count = self.tied.sum(1)
        first = (count.cumsum(0) - count)[row]
        pool = count[row]
        if own is None:
            ranks = random_ranks(key, nodes, pool, picks)
        else:
            within = self.tied[row, own]
            flat = row * self.tied.size(1) + own
            own_rank = torch.searchsorted(places, flat) - first
            ranks = random_ranks(key, nodes, pool - within.long(), picks)
            skip = within.unsqueeze(1) & (ranks >= own_rank.unsqueeze(1))
            ranks = ranks + skip.long()
        drawn = ranks
        if ranks.numel():
            last = places.numel() - 1
            place = places[(first.unsqueeze(1) + ranks).clamp_(0, last)]
            drawn = self._id_of(place).masked_fill(ranks < 0, NOBODY)
        return torch.cat([certain, drawn], 1).sort(1).values[:, :k]

    def _id_of(self, place: Tensor) -> Tensor:
        if self.ids.dim() == 1:
            return self.ids[place % self.ids.numel()]
        return self.ids.flatten()[place]

    def _above_ids(self, k: int) -> Tensor:
        """Nodes above the boundary, padded: at most k - 1 and the node itself."""
        places = self.above.flatten().nonzero().squeeze(1)
        count = self.above.sum(1)
        row = places // self.above.size(1)
        position = torch.arange(places.numel(), device=places.device)
        position = position - (count.cumsum(0) - count)[row]
        padded = places.new_full((self.above.size(0), k), NOBODY)
        padded[row, position] = self._id_of(places)
        return padded


def choose_by_groups(
    k: int,
    key: int,
    nodes: Tensor,
    group: Tensor,
    leaders: Tensor,
    scores: Callable[[slice], Tensor],
    block: int,
    progress: Callable[[int], None] = lambda count: None,
) -> Tensor:
    """Neighbours of ``nodes`` [n] from exact similarities with everybody: [n, k].

    Nodes with equal rows share their similarities; only the draw among ties is their
    own. So a constant embedding of any size costs one row of scores. ``group`` [n] says
    to which of the groups of equal rows each belongs, ``leaders`` [G] is a node of
    each. ``scores`` gives similarities of some of them with all nodes, [b, N]: so many
    as a ``block`` of groups has.
    """
    order = group.argsort(stable=True)
    counts = torch.bincount(group, minlength=leaders.numel())
    neighbours = nodes.new_empty((nodes.numel(), k))
    done = 0
    for start in range(0, leaders.numel(), block):
        rows = slice(start, start + block)
        given, place = scores(rows), leaders[rows].unsqueeze(1)
        value = given.gather(1, place)
        given.scatter_(1, place, -torch.inf)
        threshold = given.topk(k, sorted=False).values.amin(1)
        # Back in: another node with the same row leaves out its own column instead.
        given.scatter_(1, place, value)
        ids = torch.arange(given.size(1), device=nodes.device)
        boundary = Boundary.at(given, threshold, ids)
        size = int(counts[rows].sum())
        asked = order[done : done + size]
        done += size
        node = nodes[asked]
        neighbours[asked] = boundary.choose(k, key, node, group[asked] - start, node)
        progress(size)
    return neighbours


# --- Searches that propose neighbours ------------------------------------------------


@dataclass(frozen=True)
class Task:
    """The ``k`` most similar other nodes of every node of ``canonical``."""

    canonical: Canonical
    k: int
    key: int  # seeds the random choice among ties
    block_size: int | None = None  # rows of scores at a time; None fits a budget
    progress: Callable[[int], None] = lambda count: None  # told how many just finished


class Proposal(NamedTuple):
    """What a fast search proposes, and which rows of it are proven."""

    neighbours: Tensor  # [n, k], ascending
    sure: Tensor  # [n] bool: proven right
    floor: Tensor  # [n] float64: the k-th similarity is no lower


class Decision(NamedTuple):
    """The candidates of some rows, compared exactly."""

    nodes: Tensor  # [n, c] int64, the number of nodes where there is no candidate
    scores: Tensor  # [n, c] float64, exact; may be undefined, as nodes, unless tied
    kth: Tensor  # [n] float64, the k-th of them
    sure: Tensor  # [n] bool: nobody else reaches it, not even as a tie
    tied: Tensor  # [n] bool: more than one could be the k-th
    best: Tensor  # [n, k] int64: the k best, ascending; undefined where tied

    @classmethod
    def empty(cls, rows: int, width: int, k: int, device: torch.device) -> "Decision":
        """Room for ``rows`` decisions among ``width`` candidates."""
        kinds = (torch.int64, torch.float64, torch.float64, torch.bool, torch.bool)
        shapes = ((rows, width), (rows, width), (rows,), (rows,), (rows,), (rows, k))
        parts = zip(shapes, (*kinds, torch.int64), strict=True)
        return cls(*(torch.empty(s, dtype=t, device=device) for s, t in parts))


def settle(task: Task, start: int, decision: Decision) -> Proposal:
    """Draw among the ties of the rows from ``start`` on."""
    simple = decision.sure & ~decision.tied
    neighbours = decision.best.masked_fill_(~simple.unsqueeze(1), 0)
    tied = (decision.sure & decision.tied).nonzero().squeeze(1)
    if tied.numel():
        # The draw goes by rank among ascending ids.
        nodes, order = decision.nodes[tied].sort(1)
        scores = decision.scores[tied].gather(1, order)
        boundary = Boundary.at(scores, decision.kth[tied], nodes)
        row = torch.arange(tied.numel(), device=tied.device)
        neighbours[tied] = boundary.choose(task.k, task.key, tied + start, row, None)
    return Proposal(neighbours, decision.sure, decision.kth)
