"""Several processes find the graph of one, edge for edge."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from ecg_gnn.evolve import knn_graph, knn_search
from ecg_gnn.evolve.joint_search import knn_search_jointly, share
from ecg_gnn.evolve.query import gaps
from evolve import joint_worker
from evolve.knn_cases import embeddings, randn

TESTS = Path(__file__).parents[1]


def test_one_process_searches_as_ever():
    z = randn(30, 4)
    got = knn_search_jointly(z, 3, seed=1, metric="dot", symmetric=True)
    want = knn_search(z, 3, seed=1, metric="dot", symmetric=True)
    assert torch.equal(got.edge_index, want.edge_index)
    assert got[1:] == want[1:]


@given(
    done=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=4),
    size=st.integers(1, 5),
)
def test_shares_are_equal_and_all_there_is(done, size):
    missing = gaps([(start, start + count) for start, count in done], 40)
    shares = [share(missing, rank, size) for rank in range(size)]
    rows = [[row for part in own for row in range(*part)] for own in shares]
    wanted = [row for part in missing for row in range(*part)]
    assert [row for own in rows for row in own] == wanted
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


def test_real_processes(tmp_path):
    """Three search together, and two, of which then one dies."""
    z = embeddings("half-zero", 60)
    np.save(tmp_path / "z.npy", z.numpy())
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    done = subprocess.run(
        [sys.executable, joint_worker.__file__, str(tmp_path)],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout.split() == [str(joint_worker.LOST), "0", "0"], done.stderr
    for name in ("edges.npy", "same.npy"):
        written = torch.from_numpy(np.load(tmp_path / name))
        assert torch.equal(written, knn_graph(z, 4))
    assert not (tmp_path / "edges.npy.partial").exists()
