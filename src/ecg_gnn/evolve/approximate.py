"""Approximate k nearest neighbours: faiss proposes candidates, the rest is exact.

Similarities, order and ties are those of the exact search. Nodes with more duplicates
than there are candidates are searched exactly: an index could not tell which to draw.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.blocks import Block, NearestLists
from ecg_gnn.evolve.exact.canonical import Canonical
from ecg_gnn.evolve.exact.nearest import query_task, search_groups, search_left
from ecg_gnn.evolve.exact.ties import NOBODY, Boundary, Task, num_candidates
from ecg_gnn.evolve.query import Query, Rows, SearchResult
from ecg_gnn.kernels.hashing import distinct_rows
from ecg_gnn.system.machine import out_of_memory
from ecg_gnn.system.seeds import derive_seed

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


class FaissIndex:
    """Rows in a faiss index, searched with more or less effort."""

    effort: int
    max_effort: int
    build_threads: int

    def __init__(self, canonical: Canonical, seed: int) -> None:
        self.canonical = canonical
        self.build_threads = torch.get_num_threads()
        self._index = self._built(seed % (1 << 31))  # as wide as faiss's seeds are
        nodes = torch.arange(canonical.num_nodes)
        with _threads(self.build_threads):
            for some in nodes.split(_ROWS_AT_A_TIME):
                self._index.add(canonical.rows(some).float().numpy())

    def _built(self, seed: int) -> Any:
        raise NotImplementedError

    def _set_effort(self, count: int) -> None:
        raise NotImplementedError

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Indexed rows close to some float32 rows [n, D], -1 for none: [n, count]."""
        self._set_effort(count)
        with _threads(torch.get_num_threads()):
            return torch.from_numpy(self._index.search(rows.numpy(), count)[1])


class InvertedFile(FaissIndex):
    """Cells of rows; ``effort`` is the number of cells searched."""

    def _built(self, seed: int) -> Any:
        import faiss

        num_nodes, dim = self.canonical.grid.shape
        self.effort, self.max_effort = 1, num_cells(num_nodes)
        flat = faiss.IndexFlatL2 if self.canonical.euclidean else faiss.IndexFlatIP
        self._centres = flat(dim)  # an attribute: the index only points to it
        if self.max_effort == 1:  # too few rows for cells
            return self._centres
        metric = self._centres.metric_type
        index = faiss.IndexIVFFlat(self._centres, dim, self.max_effort, metric)
        index.cp.seed = seed
        index.cp.max_points_per_centroid = _TRAINED_PER_CELL
        generator = torch.Generator().manual_seed(seed)
        some = torch.randperm(num_nodes, generator=generator)
        some = some[: _TRAINED_PER_CELL * self.max_effort].sort().values
        with _threads(self.build_threads):
            index.train(self.canonical.rows(some).float().numpy())
        return index

    def _set_effort(self, count: int) -> None:
        if self.max_effort > 1:
            self._index.nprobe = self.effort


class SmallWorld(FaissIndex):
    """A graph of links (HNSW); ``effort`` is the length of its candidate list."""

    def _built(self, seed: int) -> Any:
        import faiss

        self.effort, self.max_effort = _FIRST_EFFORT, _MAX_EFFORT
        self.build_threads = 1  # several threads would link rows in a random order
        inner, distance = faiss.METRIC_INNER_PRODUCT, faiss.METRIC_L2
        metric = distance if self.canonical.euclidean else inner
        index = faiss.IndexHNSWFlat(self.canonical.grid.size(1), _LINKS, metric)
        index.hnsw.efConstruction = _BUILD_EFFORT
        index.hnsw.rng = faiss.RandomGenerator(seed)  # type: ignore[attr-defined]
        return index

    def _set_effort(self, count: int) -> None:
        self._index.hnsw.efSearch = max(self.effort, count)


MakeIndex = Callable[[Canonical, int], FaissIndex]
"""Builds an index of rows, from a seed."""


@contextmanager
def _threads(count: int) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def search_approximately(
    name: str, make_index: MakeIndex, query: Query, rows: Rows
) -> SearchResult:
    """Neighbours of all nodes by an index on the CPU, determined by the seed."""
    try:
        task = query_task(query, rows, torch.device("cpu"))
        result = search_index(task, name, make_index, query.seed)
        return result._replace(neighbours=result.neighbours.to(query.device))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    needed = index_bytes(rows.num_nodes, rows.dim)
    raise MemoryError(
        f"an approximate kNN search ({name}) among {rows.num_nodes:,} × "
        f"{rows.dim} embeddings takes about {needed >> 20} MiB: 'knn' exact goes "
        "over them in blocks, or lower the embedding's width to "
        f"{max(1, rows.dim // 2)} (now {rows.dim})"
    )


def search_index(
    task: Task, name: str, make_index: MakeIndex, seed: int
) -> SearchResult:
    """Neighbours of all nodes, with their recall measured on a sample."""
    canonical, k = task.canonical, task.k
    search = IndexSearch(task, make_index, derive_seed(seed, "index"))
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
            f"the {name} search finds {recall:.1%} of the nearest neighbours, less "
            f"than {RECALL:.0%}: --knn exact finds all",
            stacklevel=2,
        )
    return SearchResult(neighbours, name, recall)


def exact_kth(canonical: Canonical, nodes: Tensor, k: int) -> Tensor:
    """The true k-th similarity of a few nodes: [n]."""
    lists = NearestLists(nodes, canonical.take(nodes), k, _TILE)
    lists.offer(Block(0, canonical))
    return lists.kth


class IndexSearch:
    """A search by an index that holds only some of the duplicates of a row."""

    def __init__(self, task: Task, make_index: MakeIndex, seed: int) -> None:
        self.task, self.canonical = task, task.canonical
        self.groups = distinct_rows(task.canonical.grid)  # [N], equal rows share one
        by_group = self.groups.argsort(stable=True)
        sizes = torch.bincount(self.groups)
        first = (sizes.cumsum(0) - sizes)[self.groups[by_group]]
        rank = torch.arange(by_group.numel()) - first
        most = num_candidates(task.k) + 1  # one is the node itself
        self.indexed = by_group[rank < most]
        self.width = min(most, self.indexed.numel())
        self.has_many_duplicates = sizes[self.groups] > most
        self.index = make_index(self.canonical.take(self.indexed), seed)

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
        k, task, many = self.task.k, self.task, self.has_many_duplicates
        neighbours = torch.empty((many.numel(), k), dtype=torch.long)
        lacking, few = [torch.empty(0, dtype=torch.long)], (~many).nonzero().squeeze(1)
        for nodes in few.split(max(1, _PAIRS_AT_A_TIME // self.width)):
            if not nodes.numel():
                break
            ids, scores = self.candidates(nodes)
            kth = scores.topk(k).values[:, -1]
            enough = kth > -torch.inf
            lacking.append(nodes[~enough])
            own, row = nodes[enough], torch.arange(int(enough.sum()))
            boundary = Boundary.at(scores[enough], kth[enough], ids[enough])
            neighbours[own] = boundary.choose(k, task.key, own, row, None)
            task.progress(own.numel())
        left = torch.cat(lacking)
        if left.numel():
            neighbours[left] = search_left(task, left)
        if bool(many.any()):
            left = many.nonzero().squeeze(1)
            neighbours[left] = search_groups(task, self.groups, left)
        return neighbours
