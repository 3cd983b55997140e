"""Approximate k nearest neighbours: faiss proposes candidates, the rest is exact.

Similarities, order and ties are those of the exact search. Nodes with more duplicates
than there are candidates are searched exactly: an index could not tell which to draw.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import NOBODY, Canonical
from ecg_gnn.evolve.exact.nearest import Search, decide, search_exactly
from ecg_gnn.evolve.exact.ties import num_candidates, rank_in_row
from ecg_gnn.kernels.hashing import distinct_rows
from ecg_gnn.system.seeds import derive_seed

Kind = Literal["ivf", "hnsw"]
RECALL = 0.95
"""The target; the effort grows until a few rows reach a little more."""
_MARGIN = 0.02
SAMPLE = 1_000
"""Rows that the recall is measured on; fewer others set the effort."""
_TUNED_ON = 256
_EFFORT_GROWTH = 1.4
_PAIRS_AT_A_TIME = 1 << 18
_CELLS_PER_ROOT = 4
_ROWS_PER_CELL = 39
"""With fewer, faiss warns that it cannot place a cell well."""
_TRAINED_PER_CELL = 64
_LINKS, _BYTES_PER_LINK = 32, 10  # of a row in HNSW
_BUILD_EFFORT = 100
_FIRST_EFFORT, _MAX_EFFORT = 64, 4096
_ROWS_AT_A_TIME, _SCORES_AT_A_TIME = 16_384, 1 << 23


def index_bytes(num_nodes: int, dim: int) -> int:
    """Roughly what a search holds: rows on the grid and in the index."""
    return num_nodes * (8 * dim + 2 * _LINKS * _BYTES_PER_LINK)


def num_cells(num_nodes: int) -> int:
    """Cells of an inverted file: a few times the square root of the rows."""
    most = num_nodes // _ROWS_PER_CELL
    return max(1, min(_CELLS_PER_ROOT * math.isqrt(num_nodes), most))


class Index:
    """Some rows in a faiss index, searched with more or less ``effort``.

    Of an inverted file (ivf) that is the number of cells searched, of a graph of links
    (hnsw) the length of its candidate list. ``nodes`` [m] are in the index, and each
    search gives ``width`` of them.
    """

    index: Any

    def __init__(
        self, canonical: Canonical, nodes: Tensor, width: int, kind: Kind, seed: int
    ) -> None:
        import faiss

        self.canonical, self.nodes, self.kind = canonical, nodes, kind
        self.width = min(width, nodes.numel())
        seed %= 1 << 31  # as wide as faiss's seeds are
        dim = canonical.grid.size(1)
        metric = faiss.METRIC_L2 if canonical.euclidean else faiss.METRIC_INNER_PRODUCT
        threads = torch.get_num_threads()
        if kind == "hnsw":
            self.effort, self.max_effort = _FIRST_EFFORT, _MAX_EFFORT
            self.index = faiss.index_factory(dim, f"HNSW{_LINKS}", metric)
            self.index.hnsw.efConstruction = _BUILD_EFFORT
            self.index.hnsw.rng = faiss.RandomGenerator(seed)  # type: ignore[attr-defined]
            threads = 1  # several would link rows in a random order
        else:
            self.effort, self.max_effort = 1, num_cells(nodes.numel())
            cells = f"IVF{self.max_effort}," if self.max_effort > 1 else ""
            self.index = faiss.index_factory(dim, f"{cells}Flat", metric)
        with _threads(threads):
            if kind == "ivf" and self.max_effort > 1:
                self._train(seed)
            for some in nodes.split(_ROWS_AT_A_TIME):
                self.index.add(canonical.rows(some).float().numpy())

    def _train(self, seed: int) -> None:
        """By a few rows: faiss would copy all of them to choose as many itself."""
        self.index.cp.seed = seed
        self.index.cp.max_points_per_centroid = _TRAINED_PER_CELL
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(self.nodes.numel(), generator=generator)
        some = order[: _TRAINED_PER_CELL * self.max_effort].sort().values
        self.index.train(self.canonical.rows(self.nodes[some]).float().numpy())

    def candidates(self, nodes: Tensor) -> Tensor:
        """Other nodes that may be near, ``NOBODY`` where there are fewer: [n, c]."""
        place = self.places(self.canonical.rows(nodes).float())
        ids = self.nodes[place]
        return ids.masked_fill((place < 0) | (ids == nodes.unsqueeze(1)), NOBODY)

    def places(self, rows: Tensor) -> Tensor:
        """Places in the index close to some rows [n, D], -1 for none: [n, width]."""
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = max(self.effort, self.width)
        elif self.max_effort > 1:
            self.index.nprobe = self.effort
        with _threads(torch.get_num_threads()):
            return torch.from_numpy(self.index.search(rows.numpy(), self.width)[1])

    def tune(self, nodes: Tensor, k: int) -> None:
        """Raise the effort until enough true neighbours of ``nodes`` are candidates."""
        kth = exact_kth(self.canonical, nodes, k).unsqueeze(1)
        while True:
            found = self.canonical.candidate_scores(nodes, self.candidates(nodes))
            recall = float((found >= kth).sum(1).clamp(max=k).double().mean()) / k
            if recall >= RECALL + _MARGIN or self.effort >= self.max_effort:
                return
            more = math.ceil(_EFFORT_GROWTH * self.effort)
            self.effort = min(more, self.max_effort)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def search_approximately(kind: Kind, search: Search) -> tuple[Tensor, float]:
    """Neighbours of all nodes by an index, and their recall, measured on a sample."""
    canonical, k = search.canonical, search.k
    generator = torch.Generator().manual_seed(derive_seed(search.seed, "recall"))
    order = torch.randperm(canonical.num_nodes, generator=generator)
    neighbours = _all_neighbours(kind, search, order[-_TUNED_ON:])
    sample = order[:SAMPLE]
    # By similarity: any of several equally similar nodes is right.
    scores = canonical.candidate_scores(sample, neighbours[sample])
    near = scores >= exact_kth(canonical, sample, k).unsqueeze(1)
    recall = int(near.sum()) / near.numel()
    if recall < RECALL:
        warnings.warn(
            f"the {kind} search finds {recall:.1%} of the nearest neighbours, less "
            f"than {RECALL:.0%}: --knn exact finds all",
            stacklevel=2,
        )
    return neighbours, recall


def exact_kth(canonical: Canonical, nodes: Tensor, k: int) -> Tensor:
    """The true k-th similarity of a few nodes: [n]."""
    everybody, found = torch.arange(canonical.num_nodes), []
    for some in nodes.split(max(1, _SCORES_AT_A_TIME // canonical.num_nodes)):
        scores = canonical.scores(some, everybody)
        scores.scatter_(1, some.unsqueeze(1), -torch.inf)
        found.append(scores.topk(k).values[:, -1])
    return torch.cat(found)


def _all_neighbours(kind: Kind, search: Search, tuned_on: Tensor) -> Tensor:
    """By an index of few duplicates, exactly where it cannot give enough: [N, k]."""
    groups = distinct_rows(search.canonical.grid)  # [N], equal rows share one
    by_group = groups.argsort(stable=True)
    sizes = torch.bincount(groups)
    most = num_candidates(search.k) + 1  # one is the node itself
    indexed = by_group[rank_in_row(groups[by_group], sizes.numel()) < most]
    seed = derive_seed(search.seed, "index")
    index = Index(search.canonical, indexed, most, kind, seed)
    index.tune(tuned_on, search.k)
    neighbours = torch.empty((groups.numel(), search.k), dtype=torch.long)
    lacking = sizes[groups] > most
    few = (~lacking).nonzero().squeeze(1)
    for nodes in few.split(max(1, _PAIRS_AT_A_TIME // index.width)):
        neighbours[nodes], kth = decide(search, nodes, index.candidates(nodes))
        lacking[nodes] = kth == -torch.inf
        search.report(int((~lacking[nodes]).sum()))
    left = lacking.nonzero().squeeze(1)
    if left.numel():
        neighbours[left] = search_exactly(search, groups, left)
    return neighbours
