"""An inverted file in PyTorch, for a GPU: rows of a cell are compared all at once.

Rows belong to the nearest of many centres. A row's candidates are the members of the
cells around its own (``effort`` many), the same for all rows of a cell: a search is one
matrix product and one selection per cell. Centres are placed by sums of integers, so
the cells are the same in every run.

Products are maximal where distances are minimal once every row has one coordinate more
that makes all of them equally long (Bachrach et al. 2014); unit rows need none.
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
        with full_precision(canonical.grid.device):
            lifted = canonical.grid if self.euclidean else _equally_long(canonical)
            self._centres = _place_centres(lifted, self.most, seed)
            self._cell_of = _nearest_centres(lifted, self._centres)
        self.order = self._cell_of.argsort(stable=True)
        self._place = self.order.argsort()
        self._rows = canonical.grid[self.order].float() * _STEP
        sizes = torch.bincount(self._cell_of, minlength=self.most)
        self._ends = [0, *sizes.cumsum(0).tolist()]

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Candidates of some of the rows, -1 for none: [n, count]."""
        found = rows.new_full((rows.numel(), count), -1)
        cell, place = self._cell_of[rows].sort(stable=True)
        cells, sizes = cell.unique_consecutive(return_counts=True)
        places = place.split(sizes.tolist())
        with full_precision(rows.device):
            around = self._cells_around(cells)
            for near, some in zip(around, places, strict=True):
                found[some] = self._search_cells(near, rows[some], count)
        return found

    def _cells_around(self, cells: Tensor) -> list[list[int]]:
        """The nearest cells of each, itself always the first."""
        asking = self._centres[cells]
        if not self.euclidean:
            asking[:, -1] = 0  # rows that ask need not be long
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
        # As seen from the cell's centre rows are small, and so is what is rounded off.
        centre = self._centres[near[0], : self._rows.size(1)]
        others = torch.cat([self._rows[part] for part in parts]) - centre
        squares = others.square().sum(1)
        shift = -squares / 2 if self.euclidean else others @ centre
        found = rows.new_full((rows.numel(), count), -1)
        width = min(count, members.numel())
        start = 0
        for some in rows.split(max(1, _SCORES_AT_A_TIME // members.numel())):
            asking = self._rows[self._place[some]] - centre
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
    """Centres of some of the rows, by k-means: [count, D]."""
    generator = torch.Generator().manual_seed(seed % (1 << 63))
    some = torch.randperm(grid.size(0), generator=generator)[: TRAINED_PER_CELL * count]
    sample = grid[some.to(grid.device)]
    centres = sample[:count].float() * _STEP
    for _ in range(_ROUNDS):
        nearest = _nearest_centres(sample, centres)
        sums = sample.new_zeros(centres.shape, dtype=torch.int64)
        sums.index_add_(0, nearest, sample.long())
        sizes = torch.bincount(nearest, minlength=count).unsqueeze(1)
        moved = (sums.double() / sizes.clamp(min=1) * _STEP).float()
        centres = torch.where(sizes > 0, moved, centres)
    return centres


def _nearest_centres(grid: Tensor, centres: Tensor) -> Tensor:
    """Of every row the nearest centre: [N]."""
    size = max(1, _SCORES_AT_A_TIME // centres.size(0))
    nearest = [
        _closeness(rows.float() * _STEP, centres).argmax(1) for rows in grid.split(size)
    ]
    return torch.cat(nearest)


def _closeness(rows: Tensor, centres: Tensor) -> Tensor:
    """The larger, the smaller the distance, for each of the rows: [n, C]."""
    return torch.addmm(-centres.square().sum(1) / 2, rows, centres.t())
