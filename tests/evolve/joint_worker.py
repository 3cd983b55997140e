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

import pytest
import torch
import torch.distributed as dist

from ecg_gnn.evolve import KnnGraph, knn, knn_search
from ecg_gnn.evolve.knn import PATIENCE, in_first_process, knn_search_jointly
from evolve.knn_cases import embeddings

FAILED = 19


def check_graphs():
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
        got = knn_search_jointly(z, k, **options)
        assert torch.equal(got.edge_index, want.edge_index), (kind, metric)
        assert got[1:] == ("exact", None)


def check_only_the_first_searches(rank):
    edges, searches = torch.tensor([[1, 2, 0], [0, 1, 2]]), []

    def search(*_, **__):
        searches.append(rank)
        return KnnGraph(edges, "ivf", 0.75)

    knn.knn_search = search
    got = knn_search_jointly(embeddings("random", 3), 1)
    knn.knn_search = knn_search
    assert torch.equal(got.edge_index, edges)
    assert got[1:] == ("ivf", 0.75)
    assert searches == ([0] if rank == 0 else [])


def check_failures(rank):
    """An error of the first process ends the others' waiting at once."""
    z = embeddings("random", 40)
    z[27] = torch.nan
    expected = ValueError if rank == 0 else ConnectionError
    for options, reason in (
        ({}, "NaN or infinity in row 27"),
        ({"knn": "no"}, "'knn'"),
    ):
        with pytest.raises(expected, match=rf"{reason}|failed in the first process"):
            knn_search_jointly(z, 3, **options)


def check_other_work(rank):
    assert in_first_process(lambda: rank, "cpu", PATIENCE) == (0 if rank == 0 else None)


def check_patience(rank):
    """The others give up on a first process that hangs."""
    if rank == 0:
        time.sleep(8)
        return
    started = time.monotonic()
    with pytest.raises(ConnectionError, match="gone, or took longer than 1 s"):
        knn_search_jointly(embeddings("random", 9), 3, patience=timedelta(seconds=1))
    assert time.monotonic() - started < 7


def work(folder, rank):
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=3,
        timeout=timedelta(seconds=120),
    )
    check_graphs()
    check_only_the_first_searches(rank)
    check_failures(rank)
    check_other_work(rank)
    check_patience(rank)


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
