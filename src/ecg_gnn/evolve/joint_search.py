"""Step 2 by several processes, as ``torchrun`` starts them, and from file to file.

An exact search that goes over rows in blocks is shared out: every process finds the
neighbours of its share of the rows among all rows, which it reads block by block, and
nothing travels until all are done. Any other search is done by the first process, which
tells the others. Either way the graph is that of a single process, edge for edge.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack

import torch
import torch.distributed as dist

from ecg_gnn.evolve.backends import choose_backend, find
from ecg_gnn.evolve.exact.blocks import Layout, search_blocks
from ecg_gnn.evolve.knn import (
    KnnGraph,
    Metric,
    SelfLoops,
    checked_rows,
    edges_of,
    num_others,
)
from ecg_gnn.evolve.query import (
    Embeddings,
    FinishedRows,
    Found,
    Progress,
    Query,
    Range,
    Rows,
    count_rows,
)
from ecg_gnn.system.files import write_array
from ecg_gnn.system.memory import fits_in_memory, memory_budget

PATIENCE = timedelta(minutes=30)
"""How long a process that is done waits for another one, unless told otherwise."""


class KnnOptions(TypedDict, total=False):
    """Options of :func:`ecg_gnn.evolve.knn_search`, which says what they mean."""

    metric: Metric
    self_loops: SelfLoops
    symmetric: bool
    seed: int
    knn: str
    memory: int | None
    progress: Progress | None


class LostProcessError(ConnectionError):
    """Another process of a search is gone, or was silent for too long."""

    def __init__(self, reason: BaseException, patience: timedelta) -> None:
        first = (str(reason).splitlines() or [""])[0][:200]
        super().__init__(
            "another process of this kNN search is gone, or was silent for "
            f"{patience.total_seconds():.0f} s ({first}): start it again "
            "(`ecg-gnn knn` goes on after its finished rows)"
        )


@dataclass(frozen=True, kw_only=True)
class WrittenGraph:
    """What was written, and how it was found; see ``KnnGraph``."""

    out: str
    num_nodes: int
    num_edges: int
    method: str
    recall: float | None


def knn_search_jointly(
    z: Embeddings,
    k: int,
    *,
    device: str | torch.device = "cpu",
    patience: timedelta = PATIENCE,
    **options: Unpack[KnnOptions],
) -> KnnGraph:
    """:func:`ecg_gnn.evolve.knn_search` for all processes of ``torch.distributed``.

    All of them must call it, with the same arguments; all get the graph.

    Args:
        z: Embeddings, the same for all processes.
        k: Neighbours per node.
        device: Where this process computes, and where the edges are.
        patience: How long to wait for other processes once this one's share is done.
        **options: As ``knn_search`` takes them.
    """
    graph = _search(z, k, torch.device(device), patience, None, options)
    assert graph is not None, "without a file everybody gets the graph"
    return graph


def write_knn_graph(
    z: Embeddings,
    out: Path,
    k: int,
    *,
    device: str | torch.device = "cpu",
    patience: timedelta = PATIENCE,
    **options: Unpack[KnnOptions],
) -> WrittenGraph | None:
    """Write the edges [2, E] of ``knn_search_jointly`` to an .npy file.

    While an exact search goes over rows in blocks, the finished ones are kept in a
    folder beside the output: started again, it goes on there.

    Args:
        z: Embeddings, mapped from a file unless they are small.
        out: The file; of several processes the first one writes it.
        k: Neighbours per node.
        device: Where this process computes.
        patience: How long to wait for other processes once this one's share is done.
        **options: As ``knn_search`` takes them.

    Returns:
        None for processes other than the first.
    """
    folder = out.with_name(f"{out.name}.partial")
    graph = _search(z, k, torch.device(device), patience, folder, options)
    if graph is None or not is_first():
        return None
    write_array(out, graph.edge_index.cpu().numpy())
    FinishedRows(0, 0, folder).remove()
    return WrittenGraph(
        out=str(out),
        num_nodes=len(z),
        num_edges=graph.edge_index.size(1),
        method=graph.method,
        recall=graph.recall,
    )


@torch.no_grad()
def _search(
    z: Embeddings,
    k: int,
    device: torch.device,
    patience: timedelta,
    folder: Path | None,
    options: KnnOptions,
) -> KnnGraph | None:
    """The graph; None where it is not wanted: finished rows of others are in files."""
    self_loops = options.get("self_loops", "exclude")
    rows = checked_rows(z, options.get("metric", "cosine"), self_loops)
    query = Query(
        k=num_others(k, rows.num_nodes, self_loops),
        metric=options.get("metric", "cosine"),
        seed=options.get("seed", 0),
        device=device,
        memory=options.get("memory"),
        progress=options.get("progress"),
        folder=folder,
    )
    rows.check_finite()
    knn = options.get("knn", "auto")
    if num_processes() == 1 or not query.k:
        found: Found | None = find(query, rows, knn)
    elif _is_shared(query, rows, knn):
        found = _find_together(query, rows, patience)
    else:
        found = _told_by_first(query, rows, knn)
    if found is None:
        return None
    edges = edges_of(found.neighbours, self_loops, options.get("symmetric", False))
    return KnnGraph(edges, found.method, found.recall)


def _is_shared(query: Query, rows: Rows, knn: str) -> bool:
    """What the first process decides: what is free differs from one to the next."""
    shared: list[Any] = [None]
    try:
        if is_first():
            budget, kind = memory_budget(query.memory, query.device), query.device.type
            size = (rows.num_nodes, rows.dim)
            exact = not choose_backend(knn, *size, kind, budget).approximate
            fits = fits_in_memory(*size, budget, on_gpu=kind == "cuda")
            shared = [exact and not fits]
    finally:
        _tell(shared)
    return bool(shared[0])


def _told_by_first(query: Query, rows: Rows, knn: str) -> Found:
    """What the first process finds; others wait as long as their group lets them."""
    found, told = None, list[Any]([None])
    try:
        if is_first():
            found = find(query, rows, knn)
            told = [found[1:]]
    finally:
        _tell(told)
    shape = (rows.num_nodes, query.k)
    neighbours = torch.empty(shape, dtype=torch.long, device=query.device)
    neighbours = neighbours if found is None else found.neighbours.contiguous()
    dist.broadcast(neighbours, 0)
    return Found(neighbours, *told[0])


def _tell(told: list[Any]) -> None:
    """What the first process has to say; None of an error: nobody waits in vain."""
    dist.broadcast_object_list(told, 0)
    if told[0] is None and not is_first():
        raise RuntimeError("the kNN search failed in the first process, which says why")


def _find_together(query: Query, rows: Rows, patience: timedelta) -> Found | None:
    """Everybody's share; with files, None for all processes but the first."""
    finished, size = query.finished(rows), num_processes()
    search_share(query, rows, finished)
    wait_for_others(query.device, patience)
    if finished.folder is not None:
        return Found(finished.collect()) if is_first() else None
    with _telling_of_loss(patience):
        for rank in range(size):
            for start, stop in share([(0, rows.num_nodes)], rank, size):
                found = finished.neighbours[start:stop].to(query.device)
                dist.broadcast(found, rank)
                finished.keep(start, found.cpu())
    return Found(finished.collect().to(query.device))


def search_share(query: Query, rows: Rows, finished: FinishedRows) -> None:
    """Find this process's share of the rows that the first process has not finished."""
    budget, on_gpu = (
        memory_budget(query.memory, query.device),
        query.device.type == "cuda",
    )
    if query.memory is None and not on_gpu:
        budget //= int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    layout, size = Layout.fit(rows, query.k, budget, on_gpu=on_gpu), num_processes()
    missing: list[Any] = [finished.missing() if is_first() else None]
    dist.broadcast_object_list(missing, 0)
    own = share(missing[0], dist.get_rank(), size)
    tell = query.counter(rows.num_nodes)
    tell(rows.num_nodes - count_rows(missing[0]))
    others = count_rows(missing[0]) - count_rows(own)
    for start, found in search_blocks(rows, query, layout, own):
        finished.keep(start, found)
        # Others are taken to be as fast; shares differ by a row at most.
        elsewhere = min(others, (size - 1) * len(found))
        tell(len(found) + elsewhere)
        others -= elsewhere


def share(ranges: list[Range], rank: int, size: int) -> list[Range]:
    """The rows of ``ranges`` that one of ``size`` processes takes: equally many."""
    total, own, before = count_rows(ranges), [], 0
    first, last = total * rank // size, total * (rank + 1) // size
    for start, stop in ranges:
        low, high = max(first - before, 0), min(last - before, stop - start)
        if low < high:
            own.append((start + low, start + high))
        before += stop - start
    return own


def num_processes() -> int:
    """How many processes ``torch.distributed`` has joined."""
    joined = dist.is_available() and dist.is_initialized()
    return dist.get_world_size() if joined else 1


def is_first() -> bool:
    """Whether this process decides and writes."""
    return num_processes() == 1 or dist.get_rank() == 0


def wait_for_others(device: torch.device, patience: timedelta) -> None:
    """Until every process has come here.

    Raises:
        LostProcessError: One is gone, or takes longer than ``patience``.
    """
    with _telling_of_loss(patience):
        work = dist.all_reduce(torch.zeros(1, device=device), async_op=True)
        assert work is not None, "every process is a member of the default group"
        work.wait(patience)


@contextmanager
def _telling_of_loss(patience: timedelta) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # what all backends raise
        raise LostProcessError(error, patience) from None
