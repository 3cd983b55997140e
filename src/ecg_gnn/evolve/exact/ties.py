"""Which of several equally similar nodes become neighbours: a rule, not an accident.

For node u, everything more similar than the k-th value is in; the remaining r places go
to a uniformly random r-subset of the m nodes tied at that value. The draw depends on
(seed, u, m, r) alone and uses integers only, so every device and block size agrees.
"""

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import NOBODY
from ecg_gnn.kernels.edge_order import offsets_of
from ecg_gnn.kernels.hashing import mix, shift_right


def num_candidates(k: int) -> int:
    """How many candidates a node needs: k and room for near ties."""
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
    kth: Tensor,
    ids: Tensor,
    row: Tensor | None = None,
) -> Tensor:
    """The ``k`` neighbours of each of ``nodes`` [n], ascending: [n, k].

    Nodes ``ids`` [b, C], ascending, have ``scores`` [b, C], of which the k-th best is
    ``kth`` [b]. Identical nodes may share a ``row`` [n] of scores with everybody, each
    leaving out itself; else every node has a row without itself.
    """
    by_node = torch.arange(nodes.numel(), device=nodes.device) if row is None else row
    (num_rows, width), limit = scores.shape, kth.unsqueeze(1)
    # Above the k-th: at most k - 1, and the node itself.
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
