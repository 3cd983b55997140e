"""Step 2 where several processes need the same graph: together, if that is faster."""

from collections.abc import Callable
from datetime import timedelta
from typing import get_args

import torch
import torch.distributed as dist

from ecg_gnn.evolve.choice import Knn, Method, choose_method
from ecg_gnn.evolve.knn import (
    KnnGraph,
    Metric,
    SelfLoops,
    checked_rows,
    knn_search,
    num_others,
)
from ecg_gnn.evolve.neighbours import Progress
from ecg_gnn.evolve.rates import exact_seconds
from ecg_gnn.evolve.sharded import PATIENCE, knn_graph_sharded
from ecg_gnn.evolve.streamed.ring import Ring
from ecg_gnn.evolve.streamed.rows import Embeddings
from ecg_gnn.system.memory import fits_in_memory, memory_budget

JOINT_ROWS = 20_000
"""Up to so many rows one process searches alone: it has done before others would."""
_FAILED = -2.0
_METHODS: tuple[Method, ...] = get_args(Method)


def knn_search_jointly(
    z: Embeddings,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    knn: Knn = "auto",
    device: str | torch.device = "cpu",
    patience: timedelta = PATIENCE,
    progress: Progress | None = None,
) -> KnnGraph:
    """:func:`ecg_gnn.evolve.knn_search`, by all processes of ``torch.distributed``.

    An exact search that is shared out is faster where the rows do not fit into the
    memory of one process, or where there are many processes; else, as for an
    approximate search, the first one searches and tells the others. Either way all get
    the same graph, and it is that of a single process. Without other processes, it is
    ``knn_search``.

    Args:
        z: Embeddings, the same for all processes; see :func:`ecg_gnn.knn_graph`, as
            for all that follows.
        k: Neighbours per node.
        metric: What "similar" means.
        self_loops: Whether a node is its own neighbour.
        symmetric: Also add every edge's reverse.
        seed: Of ties, and of an approximate search.
        knn: Which search.
        device: Where this process computes, and where the edges are.
        patience: How long to wait for another one while all of them search.
        progress: Called with (nodes finished, all nodes).
    """
    where = torch.device(device)

    def alone() -> KnnGraph:
        return knn_search(
            z,
            k,
            metric=metric,
            self_loops=self_loops,
            symmetric=symmetric,
            seed=seed,
            knn=knn,
            device=where,
            progress=progress,
        )

    if _num_processes() == 1 or self_loops == "only":
        return alone()
    rows = checked_rows(z, metric, self_loops)
    num_others(k, rows.num_nodes, self_loops)
    if not _share_out(rows.num_nodes, rows.dim, knn, where, patience):
        return _told_by_first(alone, where)
    edges = knn_graph_sharded(
        z,
        k,
        metric=metric,
        self_loops=self_loops,
        symmetric=symmetric,
        seed=seed,
        device=where,
        patience=patience,
        progress=progress,
    )
    return KnnGraph(edges)


def sharing_pays(
    num_nodes: int, dim: int, device: str, num_processes: int, *, in_memory: bool
) -> bool:
    """Whether an exact search takes less time if processes share it out.

    Args:
        num_nodes: How many rows there are.
        dim: How long they are.
        device: ``cpu`` or ``cuda``.
        num_processes: How many would search.
        in_memory: Whether one process alone could hold all rows, which is several
            times as fast as blocks are.
    """
    alone = exact_seconds(num_nodes, dim, device, in_memory=in_memory)
    shared = exact_seconds(num_nodes, dim, device, in_memory=False) / num_processes
    return num_nodes > JOINT_ROWS and shared < alone


def _share_out(
    num_nodes: int, dim: int, knn: Knn, device: torch.device, patience: timedelta
) -> bool:
    """What the first process decides: what is free differs from one to the next."""
    ring, pays = Ring.joined(device, patience), False
    if ring.rank == 0 and num_nodes > JOINT_ROWS:
        budget, kind = memory_budget(None, device), device.type
        fits = fits_in_memory(num_nodes, dim, budget, on_gpu=kind == "cuda")
        pays = choose_method(knn, num_nodes, dim, kind, budget) == "exact"
        pays = pays and sharing_pays(num_nodes, dim, kind, ring.size, in_memory=fits)
    return ring.most(int(pays)) > 0


def _told_by_first(search: Callable[[], KnnGraph], device: torch.device) -> KnnGraph:
    """The first process's graph; the others wait as long as their group lets them."""
    said = torch.full((3,), _FAILED, dtype=torch.float64, device=device)
    found = None
    try:
        if dist.get_rank() == 0:
            found = search()
            recall = -1.0 if found.recall is None else found.recall
            numbers = (found.edge_index.size(1), _METHODS.index(found.method), recall)
            said = said.new_tensor(numbers)
    finally:  # an error is told, too: nobody shall wait for a graph that never comes
        dist.broadcast(said, 0)
    num_edges, method, recall = said.tolist()
    if num_edges == _FAILED:
        raise RuntimeError("the kNN search failed in the first process, which says why")
    edges = torch.empty((2, int(num_edges)), dtype=torch.long, device=device)
    if found is not None:
        edges = found.edge_index.contiguous()
    dist.broadcast(edges, 0)
    return KnnGraph(edges, _METHODS[int(method)], None if recall < 0 else recall)


def _num_processes() -> int:
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    return 1
