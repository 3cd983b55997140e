"""The neighbours of all nodes, by whichever search fits."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.approximate.index import Kind
from ecg_gnn.evolve.approximate.search import runs_on_gpu, search_approximately
from ecg_gnn.evolve.approximate.sizes import index_bytes
from ecg_gnn.evolve.canonical import GridRule, canonicalise
from ecg_gnn.evolve.choice import Knn, Method, choose_method
from ecg_gnn.evolve.search import nearest
from ecg_gnn.evolve.streamed.finished import Finished, InMemory
from ecg_gnn.evolve.streamed.ring import Ring
from ecg_gnn.evolve.streamed.rows import Rows
from ecg_gnn.evolve.streamed.search import search_streamed
from ecg_gnn.evolve.streamed.sharded import search_sharded
from ecg_gnn.evolve.task import Task
from ecg_gnn.system.checks import check_choice
from ecg_gnn.system.memory import fits_in_memory, memory_budget, out_of_memory
from ecg_gnn.system.seeds import derive_seed

Progress = Callable[[int, int], None]


class Found(NamedTuple):
    """Neighbours, and how they were found.

    Attributes:
        neighbours: Ascending. ``[N, k]``
        method: What they were found by.
        recall: The share of true neighbours, measured on some rows; None: exact.
    """

    neighbours: Tensor
    method: Method
    recall: float | None = None


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for the ``k`` most similar other nodes of every node.

    Attributes:
        k: Neighbours per node.
        metric: What "similar" means.
        seed: Of ties, and of an approximate search.
        knn: Which search.
        memory: Bytes that it may take; None: half of what is free.
        block_size: Rows of scores held at a time; None fits the memory.
        device: Where it computes.
        progress: Called with (nodes finished, all nodes).
    """

    k: int
    metric: str
    seed: int
    knn: Knn
    device: torch.device
    memory: int | None = None
    block_size: int | None = None
    progress: Progress | None = None

    @property
    def key(self) -> int:
        """Of the random choice among ties."""
        return derive_seed(self.seed, "knn-ties")

    def run(self, rows: Rows, finished: Finished | None = None) -> Found:
        """Find the neighbours of all nodes.

        Args:
            rows: Finite embeddings.
            finished: Where blocks of rows go where not all are searched at once; what
                is there already is not searched again. None: into memory.
        """
        num_nodes, dim, where = rows.num_nodes, rows.dim, self.device
        budget = memory_budget(self.memory, where)
        method = choose_method(self.knn, num_nodes, dim, where.type, budget)
        if method != "exact":
            return self._approximately(rows, method)
        fits = fits_in_memory(num_nodes, dim, budget, on_gpu=where.type == "cuda")
        if self.block_size is not None or fits:
            neighbours = self._in_memory(rows)
            if neighbours is not None:
                return Found(neighbours, "exact")
            budget //= 4
        finished = finished or InMemory(num_nodes, self.k)
        self._stream(rows, budget, finished)
        return Found(finished.collect().to(where), "exact")

    def _approximately(self, rows: Rows, method: Kind) -> Found:
        on_gpu = runs_on_gpu(method, self.device.type)
        try:
            where = self.device if on_gpu else torch.device("cpu")
            task = self._task(
                rows.read(0, rows.num_nodes, where), self._counter(rows.num_nodes)
            )
            found, recall = search_approximately(task, method, self.seed)
            return Found(found.to(self.device), method, recall)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        needed = index_bytes(rows.num_nodes, rows.dim, on_gpu=on_gpu)
        raise MemoryError(
            f"an approximate kNN search ({method}) among {rows.num_nodes:,} × "
            f"{rows.dim} embeddings takes about {needed >> 20} MiB: 'knn' exact goes "
            "over them in blocks, or lower the embedding's width to "
            f"{max(1, rows.dim // 2)} (now {rows.dim})"
        )

    def _stream(self, rows: Rows, budget: int, finished: Finished) -> None:
        rule, tell = GridRule.of(rows.z, self.metric), self._counter(rows.num_nodes).add
        search_streamed(
            rows, rule, self.k, self.key, budget, self.device, finished, tell
        )

    def run_sharded(self, rows: Rows, ring: Ring, finished: Finished) -> None:
        """Find the neighbours of this process's rows: see ``search_sharded``."""
        check_choice("knn", self.knn, ["auto", "exact"])
        budget = memory_budget(self.memory, self.device)
        if self.memory is None and self.device.type == "cpu":
            budget //= ring.size_here
        tell = self._counter(rows.num_nodes).add
        search_sharded(
            rows, self.metric, self.k, self.key, budget, ring, finished, tell
        )

    def _in_memory(self, rows: Rows) -> Tensor | None:
        """All rows at once; None if memory runs out."""
        try:
            z = rows.read(0, rows.num_nodes, self.device)
            return nearest(self._task(z, self._counter(rows.num_nodes)))
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        warnings.warn(
            f"not enough memory for a kNN search among {rows.num_nodes:,} × {rows.dim} "
            "embeddings at once: it goes on in blocks",
            stacklevel=2,
        )
        return None

    def _task(self, z: Tensor, counter: "_Counter") -> Task:
        rows = canonicalise(z, self.metric)
        return Task(rows, self.k, self.key, self.block_size, counter.add)

    def _counter(self, num_nodes: int) -> "_Counter":
        return _Counter(num_nodes, self.progress)


class _Counter:
    """Turns "so many more" into "so many of all"."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def add(self, count: int) -> None:
        self.done += count
        if self.progress is not None and count:
            self.progress(self.done, self.total)
