"""Step 2 from file to file, by one process or by several."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.evolve.choice import Knn, Method
from ecg_gnn.evolve.knn import Metric, SelfLoops, checked_rows, edges_of, num_others
from ecg_gnn.evolve.neighbours import Found, Progress, Search
from ecg_gnn.evolve.sharded import PATIENCE
from ecg_gnn.evolve.streamed.finished import OnDisk
from ecg_gnn.evolve.streamed.ring import Ring
from ecg_gnn.evolve.streamed.rows import Embeddings, Rows
from ecg_gnn.system.files import write_array


@dataclass(frozen=True, kw_only=True)
class WrittenGraph:
    """What was written, and how it was found; see ``KnnGraph``."""

    out: str
    num_nodes: int
    num_edges: int
    method: Method
    recall: float | None


@torch.no_grad()
def write_knn_graph(
    z: Embeddings,
    out: Path,
    k: int,
    *,
    metric: Metric = "cosine",
    self_loops: SelfLoops = "exclude",
    symmetric: bool = False,
    seed: int = 0,
    knn: Knn = "auto",
    memory: int | None = None,
    device: str | torch.device = "cpu",
    patience: timedelta = PATIENCE,
    progress: Progress | None = None,
) -> WrittenGraph | None:
    """Write the edges [2, E] of ``knn_search`` to an .npy file.

    Where ``torch.distributed`` is initialised, all its processes search together and
    the first one writes. While an exact search goes over rows in blocks, the finished
    ones are kept in a folder beside the output: started again, it goes on there.

    Args:
        z: Embeddings, mapped from a file unless they are small.
        out: The file.
        k: Neighbours per node, as all that follows a matter of ``knn_search``.
        metric: What "similar" means.
        self_loops: Whether a node is its own neighbour.
        symmetric: Also add every edge's reverse.
        seed: Of ties, and of an approximate search.
        knn: Which search; several processes can only do the exact one.
        memory: Bytes that an exact search may take in each process.
        device: Where this process computes.
        patience: How long to wait for another process before giving up.
        progress: Called with (nodes finished, all nodes).

    Returns:
        None for processes other than the first.
    """
    rows = checked_rows(z, metric, self_loops)
    others = num_others(k, rows.num_nodes, self_loops)
    search = Search(
        k=others,
        metric=metric,
        seed=seed,
        knn=knn,
        device=torch.device(device),
        memory=memory,
        progress=progress,
    )
    kept = OnDisk(
        out.with_name(f"{out.name}.partial"),
        rows.num_nodes,
        others,
        _described(search, rows),
    )
    found = _find(search, rows, kept, patience)
    if found is None:
        return None
    edges = edges_of(found.neighbours.cpu(), self_loops, symmetric)
    write_array(out, edges.numpy())
    kept.remove()
    return WrittenGraph(
        out=str(out),
        num_nodes=rows.num_nodes,
        num_edges=edges.size(1),
        method=found.method,
        recall=found.recall,
    )


def _find(
    search: Search, rows: Rows, kept: OnDisk, patience: timedelta
) -> Found | None:
    joined = torch.distributed.is_available() and torch.distributed.is_initialized()
    ring = Ring.joined(search.device, patience) if joined else None
    is_first = ring is None or ring.rank == 0
    if not search.k:  # self-loops alone
        nobody = torch.empty((rows.num_nodes, 0), dtype=torch.long)
        return Found(nobody, "exact") if is_first else None
    if ring is None or ring.size == 1:
        rows.refuse(rows.first_bad(0, rows.num_nodes))
        return search.run(rows, kept)
    search.run_sharded(rows, ring, kept)
    ring.most(0)  # everybody has kept what they found
    return Found(kept.collect(), "exact") if is_first else None


def _described(search: Search, rows: Rows) -> Mapping[str, Any]:
    """What tells searches apart whose finished rows must not be mixed."""
    described: dict[str, Any] = {
        "rows": list(rows.z.shape),
        "k": search.k,
        "similarity": search.metric,
        "seed": search.seed,
    }
    if rows.file is not None:
        with suppress(OSError):
            status = rows.file.stat()
            described["file"] = [status.st_size, status.st_mtime_ns]
    return described
