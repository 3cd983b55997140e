"""Three processes that search together; how each of them ended is written.

They are forks of one that has imported everything: importing takes longer than all the
rest. The argument is a folder to meet in.
"""

import os
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ecg_gnn.evolve import KnnGraph, joint, knn_graph, knn_search
from ecg_gnn.evolve.graph_file import write_knn_graph
from ecg_gnn.evolve.sharded import knn_graph_sharded
from ecg_gnn.evolve.streamed.layout import Layout
from ecg_gnn.evolve.streamed.ring import LostProcessError, Ring
from evolve.knn_cases import embeddings

LOST, HUNG, FAILED = 17, 18, 19
_PATIENCE = timedelta(seconds=30)


def check_graphs():
    for kind, num_nodes, metric in (
        ("random", 101, "cosine"),
        ("ties", 64, "dot"),
        ("constant", 50, "euclidean"),
        ("random", 2, "euclidean"),
    ):
        z = embeddings(kind, num_nodes)
        k = min(5, num_nodes - 1)
        want = knn_graph(z, k, metric=metric, seed=3, symmetric=True)
        for memory in (2 * Layout.least_bytes(z.size(1), k), 1 << 28):
            got = knn_graph_sharded(
                z,
                k,
                metric=metric,
                seed=3,
                symmetric=True,
                memory=memory,
                patience=_PATIENCE,
            )
            assert torch.equal(got, want), (kind, metric, memory)


def check_joint_searches(rank):
    """Shared out or told by the first, all have the graph of one process."""
    z, shared = embeddings("ties", 80), []
    want = knn_search(z, 4, seed=3, self_loops="add")
    joint.JOINT_ROWS = 50

    def spy(*arguments, **options):
        shared.append(arguments)
        return knn_graph_sharded(*arguments, **options)

    joint.knn_graph_sharded = spy
    for fits in (True, False):
        # Free memory differs from process to process: the first one's counts.
        mine = fits if rank == 0 else not fits
        joint.fits_in_memory = lambda *_, mine=mine, **__: mine
        got = joint.knn_search_jointly(z, 4, seed=3, self_loops="add")
        assert torch.equal(got.edge_index, want.edge_index)
        assert got[1:] == ("exact", None)
        assert len(shared) == (not fits)


def check_told_graph(rank):
    """What only the first process has found: an approximate graph."""
    edges = torch.tensor([[1, 2, 0], [0, 1, 2]])
    searches = []

    def found(*_, **__):
        searches.append(rank)
        return KnnGraph(edges, "ivf", 0.75)

    joint.knn_search = found
    got = joint.knn_search_jointly(embeddings("random", 3), 1, knn="ivf")
    assert torch.equal(got.edge_index, edges)
    assert got[1:] == ("ivf", 0.75)
    assert searches == ([0] if rank == 0 else [])


def check_told_failure(rank):
    """An error of the first process ends the others' waiting at once."""

    def fails(*_, **__):
        raise ValueError("no such luck")

    joint.knn_search, before = fails, joint.knn_search
    expected = ValueError if rank == 0 else RuntimeError
    with pytest.raises(expected, match=r"no such luck|failed in the first process"):
        joint.knn_search_jointly(embeddings("random", 3), 1, knn="ivf")
    joint.knn_search = before


def write_graph(folder):
    z = np.load(folder / "z.npy", mmap_mode="r")
    memory = 2 * Layout.least_bytes(z.shape[1], 4)
    write_knn_graph(z, folder / "edges.npy", 4, memory=memory, patience=_PATIENCE)


def lose_one(rank):
    """The second process dies when it is about to pass on its rows."""
    if rank == 1:
        Ring.start_exchange = lambda self, *rows: os._exit(0)
    z = embeddings("random", 90)
    started = time.monotonic()
    try:
        knn_graph_sharded(z, 3, patience=_PATIENCE)
    except LostProcessError:
        in_time = time.monotonic() - started < 2 * _PATIENCE.total_seconds()
        os._exit(LOST if in_time else HUNG)


def meet(folder, rank, size):
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting-of-{size}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=120),
    )


def work(folder, rank):
    meet(folder, rank, 3)
    check_graphs()
    write_graph(folder)
    dist.destroy_process_group()
    if rank < 2:
        meet(folder, rank, 2)
        check_graphs()
        check_joint_searches(rank)
        check_told_graph(rank)
        check_told_failure(rank)
        lose_one(rank)


def fork(folder, rank):
    child = os.fork()
    if child:
        return child
    status = FAILED
    try:
        work(folder, rank)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main():
    folder = Path(sys.argv[1])
    children = [fork(folder, rank) for rank in range(3)]
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.stdout.write(" ".join(map(str, ended)))


if __name__ == "__main__":
    main()
