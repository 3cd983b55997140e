"""Indexes of faiss, sized by how many rows they hold."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import Tensor

from ecg_gnn.evolve.approximate.sizes import LINKS, TRAINED_PER_CELL, num_cells
from ecg_gnn.evolve.canonical import Canonical
from ecg_gnn.system.checks import MissingExtraError

Kind = Literal["ivf", "hnsw"]
_BUILD_EFFORT = 100
_FIRST_EFFORT, _MOST_EFFORT = 64, 4096
_ROWS_AT_A_TIME = 16_384


def faiss_installed() -> bool:
    """Whether the extra ``ann`` is here."""
    return find_spec("faiss") is not None


class Index:
    """Rows that can be searched, with more or less effort.

    Attributes:
        effort: How many cells are looked into, or how long the list of candidates is.
        most: What it cannot usefully exceed.
        order: All rows, in the order in which to search.
    """

    def __init__(self, kind: Kind, canonical: Canonical, seed: int) -> None:
        if not faiss_installed():
            raise MissingExtraError("faiss", "ann", f"'knn' {kind!r}")
        self.kind, self.canonical = kind, canonical
        self.order = torch.arange(canonical.num_nodes)
        seed %= 1 << 31  # as wide as its seeds are
        if kind == "ivf":
            self.effort, self.most = 1, num_cells(canonical.num_nodes)
            self._index = self._inverted_file(seed)
        else:
            self.effort, self.most = _FIRST_EFFORT, _MOST_EFFORT
            self._index = self._small_world(seed)
        # Several threads would link rows in an order of their own.
        with _threads(1 if kind == "hnsw" else torch.get_num_threads()):
            for rows in self.order.split(_ROWS_AT_A_TIME):
                self._index.add(self._rows(rows))

    def _inverted_file(self, seed: int) -> Any:
        import faiss

        dim = self.canonical.grid.size(1)
        kind = faiss.IndexFlatL2 if self.canonical.euclidean else faiss.IndexFlatIP
        self._centres = kind(dim)  # lives as long as the index that looks at it
        if self.most == 1:  # too few rows for cells
            return self._centres
        metric = self._centres.metric_type
        index = faiss.IndexIVFFlat(self._centres, dim, self.most, metric)
        index.cp.seed = seed
        index.cp.max_points_per_centroid = TRAINED_PER_CELL
        generator = torch.Generator().manual_seed(seed)
        some = torch.randperm(self.canonical.num_nodes, generator=generator)
        some = some[: TRAINED_PER_CELL * self.most].sort().values
        with _threads(torch.get_num_threads()):
            index.train(self._rows(some))
        return index

    def _small_world(self, seed: int) -> Any:
        import faiss

        euclidean = self.canonical.euclidean
        metric = faiss.METRIC_L2 if euclidean else faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWFlat(self.canonical.grid.size(1), LINKS, metric)
        index.hnsw.efConstruction = _BUILD_EFFORT
        index.hnsw.rng = faiss.RandomGenerator(seed)  # type: ignore[attr-defined]
        return index

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Candidates of some of the rows, -1 for none: [n, count]."""
        if self.kind == "ivf" and self.most > 1:
            self._index.nprobe = self.effort
        elif self.kind == "hnsw":
            self._index.hnsw.efSearch = max(self.effort, count)
        with _threads(torch.get_num_threads()):
            found = self._index.search(self._rows(rows), count)[1]
        return torch.from_numpy(found)

    def _rows(self, rows: Tensor) -> Any:
        return self.canonical.rows(rows).float().numpy()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
