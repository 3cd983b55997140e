"""An inverted file in PyTorch, for a GPU: rows of a cell are compared all at once.

Rows belong to the nearest of many centres. A row's candidates are the members of the
cells around its own (``effort`` many), the same for all rows of a cell: a search is one
matrix product and one selection per cell. Centres are placed by sums of integers, so
the cells are the same in every run.

Products are maximal where distances are minimal once every row has one coordinate more
that makes all of them equally long (Bachrach et al. 2014); unit rows need none. Rows
may be very dense: distances to centres are float64, and a cell's centre is taken off
its rows on the grid, before anything is rounded.
"""

import torch
from torch import Tensor

from ecg_gnn.evolve.approximate.sizes import TRAINED_PER_CELL, num_cells
from ecg_gnn.evolve.canonical import GRID_BITS, Canonical
from ecg_gnn.evolve.precision import full_precision

_ROUNDS = 10
"""Of placing the centres."""
_SCORES_AT_A_TIME = 1 << 27
_STEP = 2.0**-GRID_BITS
_ROUNDING = 1e-6
"""Unit rows' squared lengths differ by less."""


class Cells:
    """Rows that can be searched, with more or less effort.

    Attributes:
        effort: How many cells are looked into.
        most: How many there are.
        order: All rows, those of a cell together. ``[N]``
    """

    def __init__(self, canonical: Canonical, seed: int) -> None:
        self.euclidean = canonical.euclidean
        self.effort, self.most = 1, num_cells(canonical.num_nodes)
        lifted = canonical.grid if self.euclidean else _equally_long(canonical)
        self._centres = _place_centres(lifted, self.most, seed)
        self._cell_of = _nearest_centres(lifted, self._centres)
        del lifted
        self.order = self._cell_of.argsort(stable=True)
        self._place = self.order.argsort()
        self._rows = canonical.grid[self.order]
        sizes = torch.bincount(self._cell_of, minlength=self.most)
        self._ends = [0, *sizes.cumsum(0).tolist()]

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Candidates of some of the rows, -1 for none: [n, count]."""
        found = rows.new_full((rows.numel(), count), -1)
        cell, place = self._cell_of[rows].sort(stable=True)
        cells, sizes = cell.unique_consecutive(return_counts=True)
        places = place.split(sizes.tolist())
        around = self._cells_around(cells)
        with full_precision(rows.device):
            for near, some in zip(around, places, strict=True):
                found[some] = self._search_cells(near, rows[some], count)
        return found

    def _cells_around(self, cells: Tensor) -> list[list[int]]:
        """The nearest cells of each, itself always the first."""
        asking = self._centres[cells]
        if not self.euclidean:  # who asks is as long, too, but in its own direction
            length = asking.norm(dim=1, keepdim=True)
            asking[:, -1] = 0
            shorter = asking.norm(dim=1, keepdim=True)
            asking *= length / shorter.masked_fill(shorter == 0, 1)
        near = []
        size = max(1, _SCORES_AT_A_TIME // self.most)
        for some, own in zip(asking.split(size), cells.split(size), strict=True):
            scores = _closeness(some, self._centres)
            scores.scatter_(1, own.unsqueeze(1), torch.inf)
            near += scores.topk(self.effort).indices.tolist()
        return near

    def _search_cells(self, near: list[int], rows: Tensor, count: int) -> Tensor:
        """Candidates of rows of the cell ``near[0]`` in all cells ``near``."""
        parts = [slice(self._ends[cell], self._ends[cell + 1]) for cell in near]
        members = torch.cat([self.order[part] for part in parts])
        centre = self._centres[near[0], : self._rows.size(1)].float()
        on_grid = torch.round(centre / _STEP).to(self._rows.dtype)
        others = torch.cat([self._rows[part] for part in parts])
        others = others.sub_(on_grid) * _STEP  # float32 now that they are small
        shift = -_half_squares(others) if self.euclidean else others @ centre
        found = rows.new_full((rows.numel(), count), -1)
        width = min(count, members.numel())
        start = 0
        for some in rows.split(max(1, _SCORES_AT_A_TIME // members.numel())):
            asking = (self._rows[self._place[some]] - on_grid) * _STEP
            best = torch.addmm(shift, asking, others.t()).topk(width, sorted=False)
            found[start : start + some.numel(), :width] = members[best.indices]
            start += some.numel()
        return found


def _equally_long(canonical: Canonical) -> Tensor:
    """Rows on the grid with a coordinate that lengthens all to the longest: [N, D + 1].

    The squared distance of a row that has 0 there then falls as the product grows.
    """
    squares = 2 * canonical.half_square
    lacking = squares.max() - squares
    lacking[lacking < _ROUNDING * squares.max()] = 0
    column = torch.round(lacking.sqrt() / _STEP).to(canonical.grid.dtype)
    return torch.cat([canonical.grid, column.unsqueeze(1)], 1)


def _place_centres(grid: Tensor, count: int, seed: int) -> Tensor:
    """Centres of some of the rows, by k-means: [count, D] float64."""
    generator = torch.Generator().manual_seed(seed % (1 << 63))
    some = torch.randperm(grid.size(0), generator=generator)[: TRAINED_PER_CELL * count]
    sample = grid[some.to(grid.device)]
    centres = sample[:count].double() * _STEP
    for _ in range(_ROUNDS):
        nearest = _nearest_centres(sample, centres)
        sums = sample.new_zeros(centres.shape, dtype=torch.int64)
        sums.index_add_(0, nearest, sample.long())
        sizes = torch.bincount(nearest, minlength=count).unsqueeze(1)
        moved = sums.double() / sizes.clamp(min=1) * _STEP
        centres = torch.where(sizes > 0, moved, centres)
    return centres


def _nearest_centres(grid: Tensor, centres: Tensor) -> Tensor:
    """Of every row the nearest centre: [N]."""
    size = max(1, _SCORES_AT_A_TIME // centres.size(0))
    nearest = [
        _closeness(rows.double() * _STEP, centres).argmax(1)
        for rows in grid.split(size)
    ]
    return torch.cat(nearest)


def _closeness(rows: Tensor, centres: Tensor) -> Tensor:
    """The larger, the smaller the distance, for each of the rows: [n, C]."""
    return torch.addmm(-_half_squares(centres), rows, centres.t())


def _half_squares(rows: Tensor) -> Tensor:
    return rows.square().sum(1) / 2
