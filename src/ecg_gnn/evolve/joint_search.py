"""Step 2 under ``torchrun``: the first process searches, the others wait for it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypedDict, TypeVar, Unpack

import torch
import torch.distributed as dist

from ecg_gnn.evolve.knn import KnnGraph, Metric, SelfLoops, knn_search
from ecg_gnn.evolve.query import Embeddings, Progress

Result = TypeVar("Result")
PATIENCE = timedelta(days=1)
"""How long the other processes wait for the first, unless told otherwise."""


class KnnOptions(TypedDict, total=False):
    """Options of :func:`ecg_gnn.evolve.knn_search`, which explains them."""

    metric: Metric
    self_loops: SelfLoops
    symmetric: bool
    seed: int
    knn: str
    memory: int | None
    progress: Progress | None


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
        z: Embeddings.
        k: Neighbours per node.
        device: Where to compute, and where the edges are.
        patience: How long to wait for the first process.
        **options: See ``knn_search``.
    """
    graph = in_first_process(
        lambda: knn_search(z, k, device=device, **options), device, patience
    )
    if not _has_others():
        assert graph is not None, "a single process is the first"
        return graph
    told: list[Any] = [graph and (tuple(graph.edge_index.shape), graph[1:])]
    dist.broadcast_object_list(told, 0)
    shape, how = told[0]
    edges = torch.empty(shape, dtype=torch.long, device=device)
    edges = edges if graph is None else graph.edge_index.contiguous()
    dist.broadcast(edges, 0)
    return KnnGraph(edges, *how)


def _has_others() -> bool:
    """Whether ``torch.distributed`` has joined several processes."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def in_first_process(
    work: Callable[[], Result], device: str | torch.device, patience: timedelta
) -> Result | None:
    """The result of ``work`` in the first process; others get None once it is done.

    Raises:
        ConnectionError: The first process failed, is gone, or took longer than
            ``patience``.
    """
    if not _has_others():
        return work()
    succeeded = torch.zeros(1, device=device)
    if dist.get_rank() == 0:
        try:
            result = work()
            succeeded.fill_(1)
        finally:
            dist.broadcast(succeeded, 0)  # after an error, too: nobody waits in vain
        return result
    try:
        handle = dist.broadcast(succeeded, 0, async_op=True)
        assert handle is not None, "every process is a member of the default group"
        handle.wait(patience)
    except RuntimeError as error:  # what all backends raise
        reason = (str(error).splitlines() or [""])[0][:200]
        raise ConnectionError(
            "the first process of this kNN search is gone, or took longer than "
            f"{patience.total_seconds():.0f} s ({reason}): start it again "
            "(`ecg-gnn knn` resumes after its finished blocks)"
        ) from None
    if not bool(succeeded):
        raise ConnectionError(
            "the kNN search failed in the first process, which says why"
        )
    return None
