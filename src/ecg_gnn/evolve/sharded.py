"""Step 2 by several processes, as ``torchrun`` starts them."""

from datetime import timedelta

import torch
from torch import Tensor

from ecg_gnn.evolve.knn import Metric, SelfLoops, checked_rows, edges_of, num_others
from ecg_gnn.evolve.neighbours import Progress, Search
from ecg_gnn.evolve.streamed.finished import InMemory
from ecg_gnn.evolve.streamed.ring import Ring
from ecg_gnn.evolve.streamed.rows import Embeddings
from ecg_gnn.system.checks import InputError

PATIENCE = timedelta(minutes=30)
"""How long a process waits for another one, unless it is told otherwise."""


@torch.no_grad()
def knn_graph_sharded(
    z: Embeddings,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    memory: int | None = None,
    device: str | torch.device = "cpu",
    patience: timedelta = PATIENCE,
    progress: Progress | None = None,
) -> Tensor:
    """:func:`ecg_gnn.knn_graph` by all processes of ``torch.distributed``.

    Every process owns some of the rows and finds their neighbours; shards of rows go
    round. All of them must call it with the same arguments, and all get the graph,
    which is that of a single process edge for edge.

    Args:
        z: Embeddings; mapped from a file, each process reads its own rows only.
        k: Neighbours per node.
        metric: What "similar" means.
        self_loops: See :func:`ecg_gnn.knn_graph`.
        symmetric: Also add every edge's reverse.
        seed: Of the ties.
        memory: Bytes that each process may take for it; None: half of what is free.
        device: Where this process computes.
        patience: How long to wait for another process before giving up.
        progress: Called with (nodes finished, all nodes), in every process.

    Raises:
        LostProcessError: Another process is gone or silent.
        InputError: ``torch.distributed`` is not initialised; see also ``knn_graph``.
    """
    rows = checked_rows(z, metric, self_loops)
    others = num_others(k, rows.num_nodes, self_loops)
    where = torch.device(device)
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise InputError(
            "'torch.distributed' must be initialised, as torchrun and "
            "init_process_group do it (got none)"
        )
    finished = InMemory(rows.num_nodes, others)
    if others:
        ring = Ring.joined(where, patience)
        search = Search(
            k=others,
            metric=metric,
            seed=seed,
            knn="exact",
            device=where,
            memory=memory,
            progress=progress,
        )
        search.run_sharded(rows, ring, finished)
        for rank in range(ring.size):
            part = slice(*ring.share(rows.num_nodes, rank))
            if part.start < part.stop:
                finished.neighbours[part] = ring.tell(
                    finished.neighbours[part], rank
                ).cpu()
    return edges_of(finished.neighbours.to(where), self_loops, symmetric)
