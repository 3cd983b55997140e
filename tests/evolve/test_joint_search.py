"""Several processes find the graph of one, edge for edge."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.evolve import knn_graph
from ecg_gnn.evolve.sharded import knn_graph_sharded
from ecg_gnn.evolve.streamed import sharded
from ecg_gnn.evolve.streamed.finished import InMemory
from ecg_gnn.evolve.streamed.layout import Layout
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed
from evolve import ring_worker
from evolve.knn_cases import KINDS, METRICS, embeddings, randn, tied_embeddings
from evolve.knn_reference import reference_graph
from evolve.thread_ring import sharded_neighbours

TESTS = Path(__file__).parents[1]
KEY = derive_seed(3, "knn-ties")


def memory_for(z, k):
    return 2 * Layout.least_bytes(z.size(1), k)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=15, deadline=None)
@given(case=tied_embeddings(), size=st.integers(1, 5))
def test_matches_definition_with_ties(metric, case, size):
    z, k = case  # also fewer rows than processes, and k = N - 1
    found = sharded_neighbours(z, k, metric, KEY, memory_for(z, k), size)
    edges = [(v, u) for u, row in enumerate(found.tolist()) for v in row]
    assert edges == reference_graph(z, k, metric, seed=3)


@pytest.mark.parametrize("kind", KINDS)
def test_processes_change_nothing(kind):
    z = embeddings(kind, 100)
    want = knn_graph(z, 4, seed=3)[0].view(-1, 4)
    for size in (2, 3):
        got = sharded_neighbours(z, 4, "cosine", KEY, memory_for(z, 4), size)
        assert torch.equal(got, want)


def test_finished_rows_are_not_searched_again(monkeypatch):
    z = embeddings("ties", 100)
    want = knn_graph(z, 4, seed=3)[0].view(-1, 4)
    finished = InMemory(100, 4)
    for start, stop in ((0, 40), (60, 97)):
        finished.keep(start, want[start:stop])
    searched, inner = [], sharded.search_block

    def spy(block, *rest):
        searched.append((block.start, block.canonical.num_nodes))
        return inner(block, *rest)

    monkeypatch.setattr(sharded, "search_block", spy)
    got = sharded_neighbours(z, 4, "cosine", KEY, 1 << 26, 3, finished)
    assert torch.equal(got, want)
    rows = {row for start, size in searched for row in range(start, start + size)}
    assert rows == {*range(40, 60), *range(97, 100)}


def test_nothing_left_to_search():
    finished = InMemory(20, 2)
    finished.keep(0, torch.zeros((20, 2), dtype=torch.long))
    z = randn(20, 3)
    got = sharded_neighbours(z, 2, "dot", KEY, 1 << 26, 2, finished)
    assert not got.any()


def test_every_process_names_the_bad_row():
    z = randn(30, 3)
    z[27] = torch.nan
    with pytest.raises(InputError, match="NaN or infinity in row 27"):
        sharded_neighbours(z, 2, "cosine", KEY, 1 << 26, 3)


def test_memory_that_runs_out_says_what_to_lower(monkeypatch):
    def run_out(*_):
        raise MemoryError

    monkeypatch.setattr(sharded, "search_block", run_out)
    with pytest.raises(MemoryError, match=r"memory to half, [^ ]+ GiB"):
        sharded_neighbours(randn(30, 3), 2, "cosine", KEY, 1 << 26, 1)


def test_needs_processes():
    with pytest.raises(InputError, match=r"'torch.distributed' must be initialised"):
        knn_graph_sharded(randn(5, 2), 1)


def test_real_processes(tmp_path):
    """Three search together, and two, of which then one dies."""
    z = embeddings("half-zero", 60)
    np.save(tmp_path / "z.npy", z.numpy())
    environment = os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, ring_worker.__file__, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout.split() == [str(ring_worker.LOST), "0", "0"], done.stderr
    written = torch.from_numpy(np.load(tmp_path / "edges.npy"))
    assert torch.equal(written, knn_graph(z, 4))
    assert not (tmp_path / "edges.npy.partial").exists()
