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

from ecg_gnn.evolve.exact.blocks import Block, NearestLists
from ecg_gnn.evolve.exact.canonical import Canonical
from ecg_gnn.evolve.exact.nearest import query_task, search_groups, search_left
from ecg_gnn.evolve.exact.ties import NOBODY, Task, choose, num_candidates, rank_in_row
from ecg_gnn.evolve.query import Query, Rows, SearchResult
from ecg_gnn.kernels.hashing import distinct_rows
from ecg_gnn.system.machine import explaining
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
_TILE = 1024
_CELLS_PER_ROOT = 4
_ROWS_PER_CELL = 39
"""With fewer, faiss warns that it cannot place a cell well."""
_TRAINED_PER_CELL = 64
_LINKS, _BYTES_PER_LINK = 32, 10  # of a row in HNSW
_BUILD_EFFORT = 100
_FIRST_EFFORT, _MAX_EFFORT = 64, 4096
_ROWS_AT_A_TIME = 16_384


def index_bytes(num_nodes: int, dim: int) -> int:
    """Roughly what a search holds: rows on the grid and in the index."""
    return num_nodes * (8 * dim + 2 * _LINKS * _BYTES_PER_LINK)


def num_cells(num_nodes: int) -> int:
    """Cells of an inverted file: a few times the square root of the rows."""
    most = num_nodes // _ROWS_PER_CELL
    return max(1, min(_CELLS_PER_ROOT * math.isqrt(num_nodes), most))


class Index:
    """Rows in a faiss index, searched with more or less ``effort``.

    Of an inverted file (ivf) that is the number of cells searched, of a graph of links
    (hnsw) the length of its candidate list.
    """

    index: Any

    def __init__(self, canonical: Canonical, kind: Kind, seed: int) -> None:
        import faiss

        self.canonical, self.kind = canonical, kind
        seed %= 1 << 31  # as wide as faiss's seeds are
        num_nodes, dim = canonical.grid.shape
        metric = faiss.METRIC_L2 if canonical.euclidean else faiss.METRIC_INNER_PRODUCT
        threads = torch.get_num_threads()
        if kind == "hnsw":
            self.effort, self.max_effort = _FIRST_EFFORT, _MAX_EFFORT
            self.index = faiss.index_factory(dim, f"HNSW{_LINKS}", metric)
            self.index.hnsw.efConstruction = _BUILD_EFFORT
            self.index.hnsw.rng = faiss.RandomGenerator(seed)  # type: ignore[attr-defined]
            threads = 1  # several would link rows in a random order
        else:
            self.effort, self.max_effort = 1, num_cells(num_nodes)
            cells = f"IVF{self.max_effort}," if self.max_effort > 1 else ""
            self.index = faiss.index_factory(dim, f"{cells}Flat", metric)
        with _threads(threads):
            if kind == "ivf" and self.max_effort > 1:
                self._train(seed)
            for nodes in torch.arange(num_nodes).split(_ROWS_AT_A_TIME):
                self.index.add(canonical.rows(nodes).float().numpy())

    def _train(self, seed: int) -> None:
        """By a few rows: faiss would copy all of them to choose as many itself."""
        self.index.cp.seed = seed
        self.index.cp.max_points_per_centroid = _TRAINED_PER_CELL
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(self.canonical.num_nodes, generator=generator)
        some = order[: _TRAINED_PER_CELL * self.max_effort].sort().values
        self.index.train(self.canonical.rows(some).float().numpy())

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Indexed rows close to some float32 rows [n, D], -1 for none: [n, count]."""
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = max(self.effort, count)
        elif self.max_effort > 1:
            self.index.nprobe = self.effort
        with _threads(torch.get_num_threads()):
            return torch.from_numpy(self.index.search(rows.numpy(), count)[1])


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def search_approximately(kind: Kind, query: Query, rows: Rows) -> SearchResult:
    """Neighbours of all nodes by an index on the CPU, determined by the seed."""
    with explaining(_what_to_lower, kind, rows):
        task = query_task(query, rows, torch.device("cpu"))
        result = search_index(task, kind, query.seed)
        return result._replace(neighbours=result.neighbours.to(query.device))


def _what_to_lower(kind: Kind, rows: Rows) -> str:
    return (
        f"an approximate kNN search ({kind}) among {rows.num_nodes:,} × "
        f"{rows.dim} embeddings takes about "
        f"{index_bytes(rows.num_nodes, rows.dim) >> 20} MiB: 'knn' exact goes "
        "over them in blocks, or lower the embedding's width to "
        f"{max(1, rows.dim // 2)} (now {rows.dim})"
    )


def search_index(task: Task, kind: Kind, seed: int) -> SearchResult:
    """Neighbours of all nodes, with their recall measured on a sample."""
    canonical, k = task.canonical, task.k
    search = IndexSearch(task, kind, derive_seed(seed, "index"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "recall"))
    order = torch.randperm(canonical.num_nodes, generator=generator)
    search.tune(order[-_TUNED_ON:])
    neighbours = search.all_neighbours()
    sample = order[:SAMPLE]
    # By similarity: any of several equally similar nodes is right.
    scores = canonical.pair_scores(sample, neighbours[sample])
    near = scores >= exact_kth(canonical, sample, k).unsqueeze(1)
    recall = int(near.sum()) / near.numel()
    if recall < RECALL:
        warnings.warn(
            f"the {kind} search finds {recall:.1%} of the nearest neighbours, less "
            f"than {RECALL:.0%}: --knn exact finds all",
            stacklevel=2,
        )
    return SearchResult(neighbours, kind, recall)


def exact_kth(canonical: Canonical, nodes: Tensor, k: int) -> Tensor:
    """The true k-th similarity of a few nodes: [n]."""
    lists = NearestLists(nodes, canonical.take(nodes), k, _TILE)
    lists.offer(Block(0, canonical))
    return lists.kth


class IndexSearch:
    """A search by an index that holds only some of the duplicates of a row."""

    def __init__(self, task: Task, kind: Kind, seed: int) -> None:
        self.task, self.canonical = task, task.canonical
        self.groups = distinct_rows(task.canonical.grid)  # [N], equal rows share one
        by_group = self.groups.argsort(stable=True)
        sizes = torch.bincount(self.groups)
        most = num_candidates(task.k) + 1  # one is the node itself
        rank = rank_in_row(self.groups[by_group], sizes.numel())
        self.indexed = by_group[rank < most]
        self.width = min(most, self.indexed.numel())
        self.has_many_duplicates = sizes[self.groups] > most
        self.index = Index(self.canonical.take(self.indexed), kind, seed)

    def tune(self, nodes: Tensor) -> None:
        """Raise the effort until enough true neighbours of ``nodes`` are candidates."""
        k, index = self.task.k, self.index
        kth = exact_kth(self.canonical, nodes, k).unsqueeze(1)
        while True:
            hits = (self.candidates(nodes)[1] >= kth).sum(1).clamp(max=k)
            recall = float(hits.double().mean()) / k
            if recall >= RECALL + _MARGIN or index.effort >= index.max_effort:
                return
            more = math.ceil(_EFFORT_GROWTH * index.effort)
            index.effort = min(more, index.max_effort)

    def candidates(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Other nodes that may be near, ascending, and their exact similarities.

        Both [n, c]; ``NOBODY`` and minus infinity where the index gives fewer.
        """
        place = self.index.search(self.canonical.rows(nodes).float(), self.width)
        ids = self.indexed[place]
        absent = (place < 0) | (ids == nodes.unsqueeze(1))
        ids = ids.masked_fill(absent, NOBODY).sort(1).values
        absent = ids == NOBODY
        scores = self.canonical.pair_scores(nodes, ids.masked_fill(absent, 0))
        return ids, scores.masked_fill_(absent, -torch.inf)

    def all_neighbours(self) -> Tensor:
        """Neighbours of all nodes, exact where the index cannot give enough: [N, k]."""
        k, task = self.task.k, self.task
        neighbours = torch.empty((self.groups.numel(), k), dtype=torch.long)
        few = (~self.has_many_duplicates).nonzero().squeeze(1)
        many = self.has_many_duplicates.nonzero().squeeze(1)
        lacking = []
        for nodes in few.split(max(1, _PAIRS_AT_A_TIME // self.width)):
            ids, scores = self.candidates(nodes)
            kth = scores.topk(k).values[:, -1]
            enough = kth > -torch.inf
            given = (nodes[enough], scores[enough], kth[enough], ids[enough])
            neighbours[nodes[enough]] = choose(k, task.key, *given)
            lacking.append(nodes[~enough])
            task.progress(int(enough.sum()))
        left = torch.cat(lacking)
        if left.numel():
            neighbours[left] = search_left(task, left)
        if many.numel():
            neighbours[many] = search_groups(task, self.groups, many)
        return neighbours
