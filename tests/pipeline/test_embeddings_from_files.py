"""Evolved graphs of embeddings that stay in their file."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ecg_gnn.config import EvolveConfig
from ecg_gnn.evolve import knn
from ecg_gnn.evolve.exact import nearest
from ecg_gnn.pipeline import evolve
from ecg_gnn.system.checks import InputError
from small_runs import resolved, small_board
from toy_graphs import random


@pytest.fixture
def files(tmp_path):
    """The same rows, to be mapped and to be read."""
    z = random(64, 6, dtype=torch.float32).numpy()
    np.save(tmp_path / "z.npy", z)
    np.savez(tmp_path / "z.npz", z=z)
    return tmp_path


def graph_of(path, **settings):
    board, name = small_board(), f"precomputed:{path}"
    config = resolved(board, name, evolve=EvolveConfig(k=3, **settings))
    return evolve(name, board, board.split(0), config)


def spy_on_searches(monkeypatch, before):
    """Call ``before(rows)`` ahead of every search."""
    choose = knn.choose_backend

    def chosen(*arguments):
        backend = choose(*arguments)

        def search(query, rows):
            before(rows)
            return backend.search(query, rows)

        return replace(backend, search=search)

    monkeypatch.setattr(knn, "choose_backend", chosen)


@pytest.mark.parametrize("weights", ["uniform", "similarity"])
def test_rows_in_a_file_are_searched_in_blocks(files, weights, monkeypatch):
    want = graph_of(files / "z.npz", weights=weights)
    searched = []
    spy_on_searches(monkeypatch, lambda rows: searched.append(rows.file))
    monkeypatch.setattr(nearest, "fits_in_memory", lambda *_, **__: False)
    got = graph_of(files / "z.npy", weights=weights)
    assert searched == [files / "z.npy"]
    assert torch.equal(got.edge_index, want.edge_index)
    if weights == "similarity":
        assert torch.equal(got.edge_weight, want.edge_weight)


def test_a_file_that_is_cut_short_while_it_is_searched(files, monkeypatch):

    def cut(rows):
        with (files / "z.npy").open("r+b") as file:
            file.truncate(700)

    spy_on_searches(monkeypatch, cut)
    with pytest.raises(InputError, match="it was cut off while it was read"):
        graph_of(files / "z.npy")
