"""Evolved graphs that are kept: read again they are what they were."""

import dataclasses

import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.pipeline import Workspace, evolve, method
from small_runs import resolved, small_board

WEIGHTED = EvolveConfig(k=3, weights="similarity")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(cache=EmbeddingCache(tmp_path))


def same(a, b):
    assert torch.equal(a.edge_index, b.edge_index)
    assert (a.edge_weight is None) == (b.edge_weight is None)
    if a.edge_weight is not None:
        assert torch.equal(a.edge_weight, b.edge_weight)


def test_weights_are_kept_with_the_edges(workspace, monkeypatch):
    board = small_board()
    config = resolved(board, "mlp", evolve=WEIGHTED)
    arguments = ("mlp", board, board.split(0), config, workspace)
    expected = evolve(*arguments)
    same(evolve(*arguments), expected)
    monkeypatch.setattr(method, "evolve_embedding", None)  # nothing is evolved again
    same(evolve(*arguments), expected)
    plain = dataclasses.replace(config, evolve=EvolveConfig(k=3))
    found = evolve("mlp", board, board.split(0), plain, workspace)
    assert found.edge_weight is None
    assert torch.equal(found.edge_index, expected.edge_index)


def test_weights_are_made_where_only_edges_were_kept(workspace):
    board = small_board()
    plain = resolved(board, "mlp", evolve=EvolveConfig(k=3))
    evolve("mlp", board, board.split(0), plain, workspace)
    config = dataclasses.replace(plain, evolve=WEIGHTED)
    arguments = ("mlp", board, board.split(0), config, workspace)
    found = evolve(*arguments)
    assert found.edge_weight is not None
    same(found, evolve(*arguments))


def test_folds_make_another_graph(workspace):
    board = small_board()
    one = resolved(board, "mlp", evolve=WEIGHTED)
    crossed = dataclasses.replace(
        one, embed=dataclasses.replace(one.embed, cross_fit=2)
    )
    for config in (one, crossed):
        arguments = ("mlp", board, board.split(0), config, workspace)
        same(evolve(*arguments), evolve(*arguments))
