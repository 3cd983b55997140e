"""Exact k nearest neighbours: a fast search that knows when it is certain.

All ways find the same neighbours, those that `canonical` and `ties` define:

1. where few rows are distinct, their exact similarities with all nodes;
2. a fast search, compiled or on a GPU, which proves most rows right;
3. for what is left, and where there is no fast search, `blocks`.
"""

import warnings

import torch
from torch import Tensor

from ecg_gnn.evolve.exact import compiled, gpu
from ecg_gnn.evolve.exact.blocks import (
    MAX_CUDA_TILE,
    MAX_TILE,
    Block,
    Layout,
    NearestLists,
    search_blocks,
    search_nodes,
)
from ecg_gnn.evolve.exact.canonical import Canonical, canonicalise
from ecg_gnn.evolve.exact.ties import Task, choose_by_groups, num_candidates
from ecg_gnn.evolve.query import FinishedBlocks, Query, Rows, SearchResult
from ecg_gnn.kernels.hashing import distinct_rows, first_of_group
from ecg_gnn.system.machine import fits_in_memory, memory_budget, out_of_memory

_SCORE_BYTES, _CUDA_SCORE_BYTES = 128 << 20, 1 << 30
_BYTES_PER_SCORE = 32  # the float64, two masks, and the places of the ties
_MAX_GROUPS = 1024  # distinct rows at a time
_ROWS_PER_REPORT = 1 << 15


def search_exact(query: Query, rows: Rows) -> SearchResult:
    """The neighbours of all nodes, with all rows in memory if they fit."""
    budget, size = memory_budget(query.memory, query.device), (rows.num_nodes, rows.dim)
    on_gpu = query.device.type == "cuda"
    if query.block_size is not None or fits_in_memory(*size, budget, on_gpu=on_gpu):
        try:
            return SearchResult(nearest(query_task(query, rows, query.device)))
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        warnings.warn(
            f"not enough memory for a kNN search among {rows.num_nodes:,} × {rows.dim} "
            "embeddings at once: it goes on in blocks",
            stacklevel=2,
        )
        budget //= 4
    return SearchResult(_search_in_blocks(query, rows, budget).to(query.device))


def _search_in_blocks(query: Query, rows: Rows, budget: int) -> Tensor:
    """Block by block, after the blocks that an interrupted search finished."""
    layout = Layout.fit(rows, query.k, budget, on_gpu=query.device.type == "cuda")
    finished = None if query.folder is None else FinishedBlocks(query.folder)
    neighbours = torch.empty((rows.num_nodes, query.k), dtype=torch.long)
    done = finished.load(neighbours, query.fingerprint(rows)) if finished else 0
    report = query.counter(rows.num_nodes)
    report(done)
    for start, block in search_blocks(rows, query, layout, done):
        neighbours[start : start + len(block)] = block
        if finished:
            finished.save(start, block)
        report(len(block))
    return neighbours


def query_task(query: Query, rows: Rows, device: torch.device) -> Task:
    """A search with all rows in a device's memory."""
    canonical = canonicalise(rows.read(0, rows.num_nodes, device), query.metric)
    report = query.counter(rows.num_nodes)
    return Task(canonical, query.k, query.key, query.block_size, report)


def nearest(task: Task) -> Tensor:
    """The ``k`` most similar other nodes of every node, ascending ids: [N, k]."""
    num_nodes = task.canonical.num_nodes
    groups = distinct_rows(task.canonical.grid)
    nodes = torch.arange(num_nodes, device=groups.device)
    # Few distinct rows: their exact similarities cost less than one fast search.
    few = 4 * int(groups.max() + 1) <= num_nodes
    if few or num_candidates(task.k) >= num_nodes - 1:
        return search_groups(task, groups, nodes)
    if gpu.usable(task.canonical.grid, task.k):
        from ecg_gnn.evolve.exact.gpu.tiled import search_tiled

        neighbours, sure = search_tiled(task)
    elif compiled.usable(task):
        neighbours, sure = compiled.search_compiled(task)
    else:
        return search_left(task, nodes)
    left = (~sure).nonzero().squeeze(1)
    if left.numel() and 4 * torch.unique(groups[left]).numel() < left.numel():
        neighbours[left] = search_groups(task, groups, left)
    elif left.numel():
        neighbours[left] = search_left(task, left)
    return neighbours


def search_groups(task: Task, groups: Tensor, nodes: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n], computed once per distinct row: [n, k]."""
    canonical, everybody = task.canonical, first_of_group(groups)
    wanted, group = torch.unique(groups[nodes], return_inverse=True)
    leaders = everybody[wanted]

    def scores(some: slice) -> Tensor:
        return canonical.scores(leaders[some], everybody)[:, groups]

    given = (nodes, group, leaders, scores)
    size = task.block_size or _rows_of_scores(canonical)
    return choose_by_groups(task.k, task.key, *given, size, task.progress)


def _rows_of_scores(canonical: Canonical) -> int:
    """How many rows of exact scores with all nodes to hold at a time."""
    budget = _CUDA_SCORE_BYTES if canonical.grid.is_cuda else _SCORE_BYTES
    fitting = budget // (_BYTES_PER_SCORE * canonical.num_nodes)
    return max(1, min(_MAX_GROUPS, fitting))


def search_left(task: Task, nodes: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n] by float32 scores and exact ones of few pairs."""
    whole = [Block(0, task.canonical)]
    most = MAX_CUDA_TILE if nodes.is_cuda else MAX_TILE
    tile, size = min(task.block_size or most, most), _rows_of_scores(task.canonical)
    neighbours = []
    for some in nodes.split(_ROWS_PER_REPORT):
        lists = NearestLists(some, task.canonical.take(some), task.k, tile)
        neighbours.append(search_nodes(lists, task.key, lambda: whole, size))
        task.progress(some.numel())
    return torch.cat(neighbours)
