"""Several processes get the graph of the first, edge for edge."""

import os
import subprocess
import sys
from pathlib import Path

import torch

from ecg_gnn.evolve import knn_search
from ecg_gnn.evolve.knn import knn_search_jointly
from evolve import joint_worker
from evolve.knn_cases import randn

TESTS = Path(__file__).parents[1]


def test_one_process_searches_as_ever():
    z = randn(30, 4)
    got = knn_search_jointly(z, 3, seed=1, metric="dot", symmetric=True)
    want = knn_search(z, 3, seed=1, metric="dot", symmetric=True)
    assert torch.equal(got.edge_index, want.edge_index)
    assert got[1:] == want[1:]


def test_real_processes(tmp_path):
    """Three processes, of which the first hangs and dies at the end."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)])}
    done = subprocess.run(
        [sys.executable, joint_worker.__file__, str(tmp_path)],
        env=environment | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.stdout.split() == ["0", "0", "0"], done.stderr
