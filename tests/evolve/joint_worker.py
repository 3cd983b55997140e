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

from ecg_gnn.evolve import joint_search, knn_search
from ecg_gnn.evolve.exact.blocks import min_bytes
from ecg_gnn.evolve.joint_search import (
    LostProcessError,
    knn_search_jointly,
    write_knn_graph,
)
from ecg_gnn.evolve.query import Found, Rows
from evolve.knn_cases import embeddings

LOST, HUNG, FAILED = 17, 18, 19
_PATIENCE = timedelta(seconds=30)


def small_memory(z, k):
    return 2 * min_bytes(Rows.of(z), k)


def check_shared_searches():
    for kind, num_nodes, metric in (
        ("random", 101, "cosine"),
        ("ties", 64, "dot"),
        ("constant", 50, "euclidean"),
        ("random", 2, "euclidean"),
    ):
        z = embeddings(kind, num_nodes)
        k = min(5, num_nodes - 1)
        options = {"metric": metric, "seed": 3, "symmetric": True, "self_loops": "add"}
        want = knn_search(z, k, **options)
        calls = []
        got = knn_search_jointly(
            z,
            k,
            **options,
            memory=small_memory(z, k),
            patience=_PATIENCE,
            progress=lambda *done, calls=calls: calls.append(done),
        )
        assert torch.equal(got.edge_index, want.edge_index), (kind, metric)
        assert got[1:] == ("exact", None)
        assert calls == sorted(calls)
        assert not calls or calls[-1] == (num_nodes, num_nodes)


def check_bad_rows():
    """Every process says so; nobody waits."""
    z = embeddings("random", 40)
    z[27] = torch.nan
    with pytest.raises(ValueError, match="NaN or infinity in row 27"):
        knn_search_jointly(z, 3, memory=small_memory(z, 3))


def check_who_searches(rank):
    """Shared out or told by the first, as the first one has memory."""
    z, shared = embeddings("ties", 80), []
    want = knn_search(z, 4, seed=3)
    inner = joint_search.search_share

    def spy(*arguments):
        shared.append(arguments)
        return inner(*arguments)

    joint_search.search_share = spy
    for fits in (True, False):
        # Free memory differs from process to process: the first one's counts.
        mine = fits if rank == 0 else not fits
        joint_search.fits_in_memory = lambda *_, mine=mine, **__: mine
        got = knn_search_jointly(z, 4, seed=3)
        assert torch.equal(got.edge_index, want.edge_index)
        assert got[1:] == ("exact", None)
        assert len(shared) == (not fits)
    joint_search.search_share = inner


def check_told_graph(rank):
    """What only the first process has found: an approximate graph."""
    neighbours = torch.tensor([[1], [2], [0]])
    searches, inner = [], joint_search.find

    def found(*_):
        searches.append(rank)
        return Found(neighbours, "ivf", 0.75)

    joint_search.find = found
    joint_search.fits_in_memory = lambda *_, **__: True
    got = knn_search_jointly(embeddings("random", 3), 1)
    assert torch.equal(got.edge_index[0], neighbours.flatten())
    assert got[1:] == ("ivf", 0.75)
    assert searches == ([0] if rank == 0 else [])
    joint_search.find = inner


def check_told_failure(rank):
    """An error of the first process ends the others' waiting at once."""
    inner = joint_search.find

    def fails(*_):
        raise ValueError("no such luck")

    joint_search.find = fails
    expected = ValueError if rank == 0 else RuntimeError
    with pytest.raises(expected, match=r"no such luck|failed in the first process"):
        knn_search_jointly(embeddings("random", 3), 1)
    joint_search.find = inner
    expected = ValueError if rank == 0 else RuntimeError
    with pytest.raises(expected, match=r"'knn' must be|failed in the first process"):
        knn_search_jointly(embeddings("random", 3), 1, knn="fast")


def write_graph(folder):
    z = np.load(folder / "z.npy", mmap_mode="r")
    memory = small_memory(z, 4)
    write_knn_graph(z, folder / "edges.npy", 4, memory=memory, patience=_PATIENCE)
    # All at once, by the first process.
    write_knn_graph(z, folder / "same.npy", 4, memory=1 << 28, patience=_PATIENCE)


def lose_one(rank):
    """The second process dies in the middle of its share."""
    z = embeddings("random", 90)
    if rank == 1:
        joint_search.search_blocks = lambda *_: os._exit(0)
    started = time.monotonic()
    joint_search.fits_in_memory = lambda *_, **__: False
    try:
        knn_search_jointly(z, 3, patience=_PATIENCE)
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
    check_shared_searches()
    check_bad_rows()
    write_graph(folder)
    dist.destroy_process_group()
    if rank < 2:
        meet(folder, rank, 2)
        check_shared_searches()
        check_who_searches(rank)
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
