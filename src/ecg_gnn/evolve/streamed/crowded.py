"""Rows with more ties at their k-th similarity than a list holds.

The draw goes by rank among all nodes that tie, ascending. So everything is looked at
twice more: to count the ties of each piece, then to see who has the ranks drawn.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ecg_gnn.evolve.streamed.best import Best
from ecg_gnn.evolve.streamed.pieces import Piece, Pieces
from ecg_gnn.evolve.ties import NOBODY, random_ranks


def draw_crowded(best: Best, rows: Tensor, key: int, pieces: Pieces) -> Tensor:
    """The neighbours of the crowded ``rows`` [c] of ``best``, ascending: [c, k]."""
    crowd = _Crowd(best, rows)
    counts = {piece.start: crowd.count(piece) for piece in pieces}
    before, total = {}, torch.zeros_like(crowd.nodes)
    for start in sorted(counts):
        before[start] = total
        total = total + counts[start]
    certain = best.ids[rows].masked_fill(
        best.values[rows] <= crowd.kth.unsqueeze(1), NOBODY
    )
    certain = certain.sort(1).values[:, : best.k]
    picks = best.k - (certain != NOBODY).sum(1)
    ranks = random_ranks(key, crowd.nodes, total, picks)
    drawn = torch.full_like(ranks, NOBODY)
    for piece in pieces:
        inside = ranks - before[piece.start].unsqueeze(1)
        there = inside < counts[piece.start].unsqueeze(1)
        crowd.fetch(piece, inside.where(there, -1), drawn)
    return torch.cat([certain, drawn], 1).sort(1).values[:, : best.k]


class _Crowd:
    """Crowded rows, and the similarity at which others tie."""

    def __init__(self, best: Best, rows: Tensor) -> None:
        self.tile, self.canonical = best.tile, best.canonical.take(rows)
        self.nodes, self.kth = best.nodes[rows], best.kth[rows]

    def count(self, piece: Piece) -> Tensor:
        """How many nodes of a piece tie with each row: [c]."""
        counts = torch.zeros_like(self.nodes)
        everybody = torch.arange(self.nodes.numel(), device=self.nodes.device)
        for slab in piece.slabs(self.tile):
            for rows, tied in self._ties(slab, everybody):
                counts[rows] += tied.sum(1)
        return counts

    def fetch(self, piece: Piece, ranks: Tensor, drawn: Tensor) -> None:
        """Write into ``drawn`` [c, r] who has ``ranks`` [c, r] among a piece's ties.

        Ranks below zero belong to earlier pieces, or to nobody.
        """
        asked = (ranks >= 0).any(1).nonzero().squeeze(1)
        seen = torch.zeros_like(self.nodes)
        for slab in piece.slabs(self.tile):
            for rows, tied in self._ties(slab, asked):
                count = tied.sum(1)
                rank = ranks[rows] - seen[rows].unsqueeze(1)
                seen[rows] += count
                line, place = ((rank >= 0) & (rank < count.unsqueeze(1))).nonzero(
                    as_tuple=True
                )
                first = (count.cumsum(0) - count)[line]
                column = tied.nonzero()[:, 1]
                found = column[first + rank[line, place]] + slab.start
                drawn[rows[line], place] = found

    def _ties(self, slab: Piece, asked: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Some of the rows, and which nodes of a slab tie with each."""
        for rows in asked.split(self.tile):
            scores = self.canonical.take(rows).scores_with(slab.canonical)
            tied = scores == self.kth[rows].unsqueeze(1)
            slab.leave_out(self.nodes[rows], tied, False)
            yield rows, tied
