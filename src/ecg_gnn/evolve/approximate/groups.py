"""Equal rows: an index holds each once, and ties among them are still drawn."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.ties import NOBODY, Boundary
from ecg_gnn.kernels.distinct_rows import distinct_rows, first_of_group

_TABLE_CELLS = 1 << 22


class Groups:
    """Which nodes have equal rows."""

    def __init__(self, grid: Tensor) -> None:
        self.of_node = distinct_rows(grid)  # [N]
        self.leaders = first_of_group(self.of_node)  # [G]
        self.members = self.of_node.argsort(stable=True)  # [N], by group, ascending
        self.sizes = torch.bincount(self.of_node)  # [G]
        self.first = self.sizes.cumsum(0) - self.sizes  # [G], places in members

    def nodes_of(self, groups: Tensor) -> tuple[Tensor, Tensor]:
        """All members of some groups, and the place of each one's group: [n], [n]."""
        sizes = self.sizes[groups]
        place = torch.arange(groups.numel(), device=groups.device)
        place = place.repeat_interleave(sizes)
        within = torch.arange(place.numel(), device=groups.device)
        within -= (sizes.cumsum(0) - sizes)[place]
        return self.members[self.first[groups][place] + within], place


class Candidates(NamedTuple):
    """For each of some groups, others (and itself) that may be near."""

    own: Tensor  # [g] group
    groups: Tensor  # [g, c] group
    scores: Tensor  # [g, c] exact similarity, minus infinity where there is none

    def kth(self, k: int, sizes: Tensor) -> Tensor:
        """The similarity of the k-th node other than itself; -inf for too few: [g]."""
        counts = sizes[self.groups] - (self.groups == self.own.unsqueeze(1)).long()
        scores, order = self.scores.sort(1, descending=True)
        counts = counts.gather(1, order).masked_fill(scores == -torch.inf, 0)
        enough = counts.cumsum(1) >= k
        place = enough.long().argmax(1, keepdim=True)
        kth = scores.gather(1, place).squeeze(1)
        return kth.masked_fill(~enough[:, -1], -torch.inf)

    def take(self, which: Tensor) -> "Candidates":
        """Those of some of the groups."""
        return Candidates(self.own[which], self.groups[which], self.scores[which])


def choose_nodes(
    groups: Groups, candidates: Candidates, kth: Tensor, k: int, key: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Nodes, and the neighbours of each, as the tie rule has them: [n], [n, k].

    Args:
        groups: Of all nodes.
        candidates: Of some of the groups, with at least k nodes each.
        kth: The k-th similarity among each one's candidates. ``[g]``
        k: Neighbours per node.
        key: Of the random choice among ties.
    """
    # Itself, too, which may be less similar to itself than others are (dot products).
    near = candidates.groups == candidates.own.unsqueeze(1)
    near &= candidates.scores > -torch.inf
    near |= candidates.scores >= kth.unsqueeze(1)
    widths = (groups.sizes[candidates.groups] * near).sum(1)
    for some in _tables(widths):
        part = candidates.take(some)
        row, place = near[some].nonzero(as_tuple=True)
        nodes, of_pair = groups.nodes_of(part.groups[row, place])
        row, place = row[of_pair], place[of_pair]
        order = (row * groups.of_node.numel() + nodes).argsort()
        row, place, nodes = row[order], place[order], nodes[order]
        start = widths[some].cumsum(0) - widths[some]
        column = torch.arange(row.numel(), device=row.device) - start[row]
        shape = (some.numel(), int(widths[some].max()))
        ids = nodes.new_full(shape, NOBODY)
        ids[row, column] = nodes
        scores = kth.new_full(shape, -torch.inf)
        scores[row, column] = part.scores[row, place]
        asked, line = groups.nodes_of(part.own)
        own = torch.searchsorted(
            row * groups.of_node.numel() + nodes,
            line * groups.of_node.numel() + asked,
        )
        boundary = Boundary.at(scores, kth[some], ids)
        yield asked, boundary.choose(k, key, asked, line, own - start[line])


def _tables(widths: Tensor) -> Iterator[Tensor]:
    """Rows of similar widths, as many at a time as a table may have cells for."""
    order = widths.argsort(stable=True)
    while order.numel():
        place = torch.arange(1, order.numel() + 1, device=order.device)
        cells = place * widths[order]
        count = max(1, int((cells <= _TABLE_CELLS).sum()))
        yield order[:count]
        order = order[count:]
