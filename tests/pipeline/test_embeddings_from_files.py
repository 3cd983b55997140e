"""Evolved graphs of embeddings that stay in their file."""

import numpy as np
import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.pipeline import evolve
from small_runs import resolved, small_board
from toy_graphs import random


def graph_of(path, **settings):
    board, name = small_board(), f"precomputed:{path}"
    config = resolved(board, name, evolve=EvolveConfig(k=3, **settings))
    return evolve(name, board, board.split(0), config)


@pytest.mark.parametrize("weights", ["uniform", "similarity"])
def test_rows_in_a_file_give_the_graph_of_those_in_memory(tmp_path, weights):
    z = random(64, 6, dtype=torch.float32).numpy()
    np.save(tmp_path / "z.npy", z)  # this one is mapped
    np.savez(tmp_path / "z.npz", z=z)
    want, got = (graph_of(tmp_path / f"z.{s}", weights=weights) for s in ("npz", "npy"))
    assert torch.equal(got.edge_index, want.edge_index)
    if weights == "similarity":
        assert torch.equal(got.edge_weight, want.edge_weight)
