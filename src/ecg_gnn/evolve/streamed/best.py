"""The most similar nodes of some rows so far, exactly, however many have come by."""

import torch
from torch import Tensor

from ecg_gnn.evolve.approximation import Operand
from ecg_gnn.evolve.canonical import Canonical
from ecg_gnn.evolve.precision import full_precision
from ecg_gnn.evolve.streamed.pieces import Piece
from ecg_gnn.evolve.task import num_candidates
from ecg_gnn.evolve.ties import NOBODY, Boundary

_SCORES_PER_PAIR = 128
"""With fewer scores to a pair that has to be looked at (or to a place in the table of
such pairs), a whole tile of exact scores costs less."""


class Best:
    """Lists of the best nodes of some rows, filled piece by piece.

    Scores in float32 rule out what cannot reach the k-th similarity so far; what is
    left is compared exactly. So lists are right at any time, and lists of ever more
    pieces are the lists of all.
    """

    def __init__(self, nodes: Tensor, canonical: Canonical, k: int, tile: int) -> None:
        self.nodes, self.canonical, self.k, self.tile = nodes, canonical, k, tile
        self.width = num_candidates(k)
        shape, like = (nodes.numel(), self.width), canonical.half_square
        self.values = like.new_full(shape, -torch.inf)  # best first
        self.ids = nodes.new_full(shape, NOBODY)
        self.limit = like.new_full(shape[:1], -torch.inf)
        """Of each row: nobody outside its list is more similar"""
        if nodes.numel():
            self.mean = canonical.mean()
            self.offset = canonical.offset(self.mean)
            self.operand = Operand.of(canonical, self.mean)

    @property
    def kth(self) -> Tensor:
        """The k-th similarity of every row so far: [n]."""
        return self.values[:, self.k - 1]

    def offer(self, piece: Piece) -> None:
        """Compare all rows with a piece."""
        if not self.nodes.numel():
            return
        for slab in piece.slabs(self.tile):
            other = Operand.of(slab.canonical, self.mean)
            right, error = other.right(), self.operand.error(other)
            for start in range(0, self.nodes.numel(), self.tile):
                rows = slice(start, min(start + self.tile, self.nodes.numel()))
                self._offer(rows, slab, right, error[rows])

    def _offer(self, rows: slice, slab: Piece, right: Tensor, error: Tensor) -> None:
        with full_precision(right.device):
            scores = self.operand.left[rows] @ right.t()
        slab.leave_out(self.nodes[rows], scores, -torch.inf)
        least = self.kth[rows] - self.offset - error
        # Rounded down: not even a tie is ruled out.
        least = torch.nextafter(least.float(), scores.new_full((), -torch.inf))
        asked = (scores.amax(1) >= least).nonzero().squeeze(1)
        if not asked.numel():
            return
        reached = scores[asked] >= least[asked].unsqueeze(1)
        table = asked.numel() * int(reached.sum(1).amax())
        if table * _SCORES_PER_PAIR > scores.numel():
            del scores, reached
            self._compare_all(rows, slab)
        else:
            row, column = reached.nonzero(as_tuple=True)
            self._compare(asked + rows.start, slab, row, column)

    def _compare_all(self, rows: slice, slab: Piece) -> None:
        scores = self.canonical.take(rows).scores_with(slab.canonical)
        slab.leave_out(self.nodes[rows], scores, -torch.inf)
        # One more than are kept says what all others are below.
        values, column = scores.topk(min(self.width + 1, scores.size(1)))
        self._merge(rows, values, column + slab.start)

    def _compare(self, rows: Tensor, slab: Piece, row: Tensor, column: Tensor) -> None:
        """Compare single pairs: places in ``rows``, each there and ascending."""
        found = self.canonical.pairs_with(slab.canonical, rows[row], column)
        count = torch.bincount(row, minlength=rows.numel())
        place = torch.arange(row.numel(), device=row.device)
        place -= (count.cumsum(0) - count)[row]
        shape = (rows.numel(), int(count.max()))
        values = found.new_full(shape, -torch.inf)
        ids = self.ids.new_full(shape, NOBODY)
        values[row, place] = found
        ids[row, place] = column + slab.start
        self._merge(rows, values, ids)

    def _merge(self, rows: slice | Tensor, values: Tensor, ids: Tensor) -> None:
        values = torch.cat([self.values[rows], values], 1)
        ids = torch.cat([self.ids[rows], ids], 1)
        kept, place = values.topk(self.width + 1)
        self.values[rows] = kept[:, :-1]
        self.ids[rows] = ids.gather(1, place[:, :-1])
        self.limit[rows] = torch.maximum(self.limit[rows], kept[:, -1])

    def settle(self, key: int) -> tuple[Tensor, Tensor]:
        """The neighbours of every row [n, k], and the rows that are too crowded [c].

        More nodes tie for their last places than their lists hold: their neighbours
        here are not the final ones.
        """
        crowded = (self.limit >= self.kth).nonzero().squeeze(1)
        found = self.ids.new_empty((self.nodes.numel(), self.k))
        for start in range(0, self.nodes.numel(), self.tile):
            rows = slice(start, start + self.tile)
            ids, order = self.ids[rows].sort(1)
            scores = self.values[rows].gather(1, order)
            boundary = Boundary.at(scores, self.kth[rows], ids)
            row = torch.arange(ids.size(0), device=ids.device)
            own = self.nodes[rows]
            found[rows] = boundary.choose(self.k, key, own, row, None)
        return found, crowded
