"""Indexes that propose neighbours: faiss's on a CPU, cells in PyTorch on a GPU.

All of them hold rows that can be searched with more or less ``effort``, up to
``max_effort``, best in the given ``order``.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import GRID_BITS, Canonical
from ecg_gnn.evolve.exact.task import full_precision

_CELLS_PER_ROOT = 4
_ROWS_PER_CELL = 39
"""Fewer, and faiss finds that too few to place a cell by."""
_TRAINED_PER_CELL = 64
"""Rows, for each cell, that the cells' centres are placed by."""
_LINKS, _BYTES_PER_LINK = 32, 10
"""Of a row in a small world."""
_BUILD_EFFORT = 100
_FIRST_EFFORT, _MAX_EFFORT = 64, 4096
_ROWS_AT_A_TIME = 16_384
_CELLS_ENTRY_BYTES, _CELLS_ROW_BYTES = 20, 512
_ROUNDS = 10
"""Of placing the centres."""
_SCORES_AT_A_TIME = 1 << 27
_STEP = 2.0**-GRID_BITS
_ROUNDING = 1e-6
"""Unit rows' squared lengths differ by less."""


def num_cells(num_nodes: int) -> int:
    """Cells of an inverted file: some roots of the number of rows."""
    most = num_nodes // _ROWS_PER_CELL
    return max(1, min(_CELLS_PER_ROOT * math.isqrt(num_nodes), most))


def index_bytes(num_nodes: int, dim: int, *, on_gpu: bool = False) -> int:
    """What an approximate search holds, roughly: rows on the grid and in the index."""
    if on_gpu:
        return num_nodes * (_CELLS_ENTRY_BYTES * dim + _CELLS_ROW_BYTES)
    return num_nodes * (8 * dim + 2 * _LINKS * _BYTES_PER_LINK)


class FaissIndex:
    """Rows in an index of faiss."""

    effort: int
    max_effort: int

    def __init__(self, canonical: Canonical, seed: int, build_threads: int) -> None:
        self.canonical = canonical
        self.order = torch.arange(canonical.num_nodes)
        self._index = self._built(seed % (1 << 31))  # as wide as its seeds are
        with _threads(build_threads):
            for rows in self.order.split(_ROWS_AT_A_TIME):
                self._index.add(self._rows(rows))

    def _built(self, seed: int) -> Any:
        raise NotImplementedError

    def _set_effort(self, count: int) -> None:
        raise NotImplementedError

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Candidates of some of the rows, -1 for none: [n, count]."""
        self._set_effort(count)
        with _threads(torch.get_num_threads()):
            found = self._index.search(self._rows(rows), count)[1]
        return torch.from_numpy(found)

    def _rows(self, rows: Tensor) -> Any:
        return self.canonical.rows(rows).float().numpy()


class InvertedFile(FaissIndex):
    """Cells of rows; ``effort`` is how many are looked into."""

    def __init__(self, canonical: Canonical, seed: int) -> None:
        self.effort, self.max_effort = 1, num_cells(canonical.num_nodes)
        super().__init__(canonical, seed, torch.get_num_threads())

    def _built(self, seed: int) -> Any:
        import faiss

        dim = self.canonical.grid.size(1)
        kind = faiss.IndexFlatL2 if self.canonical.euclidean else faiss.IndexFlatIP
        self._centres = kind(dim)  # lives as long as the index that looks at it
        if self.max_effort == 1:  # too few rows for cells
            return self._centres
        metric = self._centres.metric_type
        index = faiss.IndexIVFFlat(self._centres, dim, self.max_effort, metric)
        index.cp.seed = seed
        index.cp.max_points_per_centroid = _TRAINED_PER_CELL
        generator = torch.Generator().manual_seed(seed)
        some = torch.randperm(self.canonical.num_nodes, generator=generator)
        some = some[: _TRAINED_PER_CELL * self.max_effort].sort().values
        with _threads(torch.get_num_threads()):
            index.train(self._rows(some))
        return index

    def _set_effort(self, count: int) -> None:
        if self.max_effort > 1:
            self._index.nprobe = self.effort


class SmallWorld(FaissIndex):
    """A graph of links (HNSW); ``effort`` is how long the list of candidates is."""

    def __init__(self, canonical: Canonical, seed: int) -> None:
        self.effort, self.max_effort = _FIRST_EFFORT, _MAX_EFFORT
        # Several threads would link rows in an order of their own.
        super().__init__(canonical, seed, build_threads=1)

    def _built(self, seed: int) -> Any:
        import faiss

        euclidean = self.canonical.euclidean
        metric = faiss.METRIC_L2 if euclidean else faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWFlat(self.canonical.grid.size(1), _LINKS, metric)
        index.hnsw.efConstruction = _BUILD_EFFORT
        index.hnsw.rng = faiss.RandomGenerator(seed)  # type: ignore[attr-defined]
        return index

    def _set_effort(self, count: int) -> None:
        self._index.hnsw.efSearch = max(self.effort, count)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


class Cells:
    """An inverted file in PyTorch, for a GPU: a cell's rows are compared all at once.

    Rows belong to the nearest of many centres. A row's candidates are the members of
    the cells around its own (``effort`` many), the same for all rows of a cell: a
    search is one matrix product and one selection per cell. Centres are placed by sums
    of integers, so the cells are the same in every run.

    Products are maximal where distances are minimal once every row has one coordinate
    more that makes all of them equally long (Bachrach et al. 2014); unit rows need
    none. Rows may be very dense: distances to centres are float64, and a cell's centre
    is taken off its rows on the grid, before anything is rounded.

    Attributes:
        effort: How many cells are looked into.
        max_effort: How many there are.
        order: All rows, those of a cell together. ``[N]``
    """

    def __init__(self, canonical: Canonical, seed: int) -> None:
        self.euclidean = canonical.euclidean
        self.effort, self.max_effort = 1, num_cells(canonical.num_nodes)
        lifted = canonical.grid if self.euclidean else _equally_long(canonical)
        self._centres = _place_centres(lifted, self.max_effort, seed)
        self._cell_of = _nearest_centres(lifted, self._centres)
        del lifted
        self.order = self._cell_of.argsort(stable=True)
        self._place = self.order.argsort()
        self._rows = canonical.grid[self.order]
        sizes = torch.bincount(self._cell_of, minlength=self.max_effort)
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
        size = max(1, _SCORES_AT_A_TIME // self.max_effort)
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
    some = torch.randperm(grid.size(0), generator=generator)[
        : _TRAINED_PER_CELL * count
    ]
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
