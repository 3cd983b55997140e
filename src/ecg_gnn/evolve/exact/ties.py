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
from ecg_gnn.kernels.edge_order import offsets_of
from ecg_gnn.kernels.hashing import mix, shift_right

NOBODY = (1 << 63) - 1
"""A placeholder that sorts after every node."""


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

    @classmethod
    def join(cls, parts: list["Proposal"]) -> "Proposal":
        """The proposals for consecutive rows, as one."""
        return cls(*(torch.cat(some) for some in zip(*parts, strict=True)))


def num_candidates(k: int) -> int:
    """How many candidates per node a search keeps: k and room for near ties."""
    return k + max(8, k // 2)


def rank_in_row(row: Tensor, num_rows: int) -> Tensor:
    """How many entries before each are in the same ``row`` [p], which ascends: [p]."""
    return torch.arange(row.numel(), device=row.device) - offsets_of(row, num_rows)[row]


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


def choose(
    k: int,
    key: int,
    nodes: Tensor,
    scores: Tensor,
    threshold: Tensor,
    ids: Tensor,
    row: Tensor | None = None,
) -> Tensor:
    """The ``k`` neighbours of each of ``nodes`` [n], ascending: [n, k].

    Nodes ``ids`` [b, C], ascending, have ``scores`` [b, C], of which the k-th best is
    the ``threshold`` [b]. Identical nodes may share a ``row`` [n] of scores with
    everybody, each leaving out itself; else every node has a row without itself.
    """
    by_node = torch.arange(nodes.numel(), device=nodes.device) if row is None else row
    (num_rows, width), limit = scores.shape, threshold.unsqueeze(1)
    # Above the threshold: at most k - 1, and the node itself.
    line, column = (scores > limit).nonzero(as_tuple=True)
    above = ids.new_full((num_rows, k), NOBODY)
    above[line, rank_in_row(line, num_rows)] = ids[line, column]
    certain = above[by_node]
    certain[certain == nodes.unsqueeze(1)] = NOBODY
    picks = k - (certain != NOBODY).sum(1)
    # At it: as many as there are places left, drawn by their rank among the tied.
    tied = scores == limit
    places = tied.flatten().nonzero().squeeze(1)
    count = tied.sum(1)
    first, pool = (count.cumsum(0) - count)[by_node], count[by_node]
    if row is None:
        ranks = random_ranks(key, nodes, pool, picks)
    else:
        is_tied = tied[row, nodes]
        own = torch.searchsorted(places, row * width + nodes) - first
        ranks = random_ranks(key, nodes, pool - is_tied.long(), picks)
        ranks += (is_tied.unsqueeze(1) & (ranks >= own.unsqueeze(1))).long()
    drawn = ranks
    if ranks.numel():
        place = places[(first.unsqueeze(1) + ranks).clamp_(0, places.numel() - 1)]
        drawn = ids[place // width, place % width].masked_fill(ranks < 0, NOBODY)
    return torch.cat([certain, drawn], 1).sort(1).values[:, :k]


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
    offsets = offsets_of(group, leaders.numel())
    neighbours = nodes.new_empty((nodes.numel(), k))
    for start in range(0, leaders.numel(), block):
        rows = slice(start, min(start + block, leaders.numel()))
        given, place = scores(rows), leaders[rows].unsqueeze(1)
        value = given.gather(1, place)
        given.scatter_(1, place, -torch.inf)
        threshold = given.topk(k, sorted=False).values.amin(1)
        # Back in: another node with the same row leaves out its own column instead.
        given.scatter_(1, place, value)
        everybody = torch.arange(given.size(1), device=nodes.device).expand_as(given)
        asked = order[int(offsets[rows.start]) : int(offsets[rows.stop])]
        rest = (given, threshold, everybody, group[asked] - start)
        neighbours[asked] = choose(k, key, nodes[asked], *rest)
        progress(asked.numel())
    return neighbours
