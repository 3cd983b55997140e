"""Weak classifiers that do not fit into memory say what to lower, and by how much."""

import re

import pytest
import torch

from ecg_gnn.data import load_dataset
from ecg_gnn.embed import (
    BGRLEmbedder,
    EmbeddingCache,
    MLPEmbedder,
    TrainedModelEmbedder,
)
from ecg_gnn.pipeline import Workspace, embed, embed_together, method
from ecg_gnn.pipeline import embed_ahead as ahead
from ecg_gnn.pipeline.workspace import embedding_advice, embedding_bytes
from ecg_gnn.scale import memory_advice
from ecg_gnn.train import LoopSettings
from small_runs import resolved, small_board

ONE_STEP = LoopSettings(steps=1)


def run_out(*_, **__):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")


@pytest.mark.parametrize(
    ("name", "what", "option"),
    [("mlp", "MLP", "--embed-hidden"), ("bgrl", "BGRL", "--embed-hidden")],
)
def test_says_what_to_lower_and_by_how_much(name, what, option, monkeypatch):
    monkeypatch.setattr(method, "embed_nodes", run_out)
    monkeypatch.setattr(memory_advice, "available_bytes", lambda _: 2**40)
    board = small_board()
    config = resolved(board, name)
    message = (
        rf"^the {what} embedding of 64 nodes takes about \d+ MiB, and 1024.0 GiB are "
        rf"left on cpu: free memory \({option} is 8 already\), or bring embeddings "
    )
    with pytest.raises(MemoryError, match=message):
        embed(name, board, board.split(0), config)


def test_so_does_a_model_that_embeds(monkeypatch):
    board = small_board()
    inner = method.embed_nodes

    def fails_in_the_end(embedder, *arguments, **options):
        if isinstance(embedder, TrainedModelEmbedder):
            run_out()
        return inner(embedder, *arguments, **options)

    monkeypatch.setattr(method, "embed_nodes", fails_in_the_end)
    message = r"^the MLP→GNN embedding of 64 nodes .* \(--hidden is 8 already\)"
    with pytest.raises(MemoryError, match=message):
        embed("mlp-gnn", board, board.split(0), resolved(board, "mlp-gnn"))


def test_so_do_several_at_a_time(monkeypatch, tmp_path):
    monkeypatch.setattr(ahead, "embed_ahead", run_out)
    board = small_board()
    splits = [board.split(index) for index in (0, 1)]
    workspace = Workspace(cache=EmbeddingCache(tmp_path))
    with pytest.raises(MemoryError, match=r"^the MLP embedding of 64 nodes"):
        embed_together("mlp", board, splits, resolved(board, "mlp"), workspace)


def test_what_needs_no_training_has_nothing_to_lower(monkeypatch):
    monkeypatch.setattr(method, "embed_nodes", run_out)
    board = small_board()
    with pytest.raises(RuntimeError, match=r"^DefaultCPUAllocator"):
        embed("features", board, board.split(0), resolved(board, "features"))


def test_what_is_said_would_fit(monkeypatch):
    graph = load_dataset("csbm:nodes=2000,features=8")
    wide = MLPEmbedder(512, 2)
    needed = embedding_bytes(wide, graph.data())
    monkeypatch.setattr(memory_advice, "available_bytes", lambda _: needed // 3)
    said = embedding_advice(wide, graph.data())
    width = int(re.search(r"--embed-hidden to (\d+) \(now 512\)", said)[1])
    narrow = embedding_bytes(MLPEmbedder(width, 2), graph.data())
    assert needed / 8 < narrow <= needed / 3


@pytest.mark.parametrize(
    "embedder",
    [
        MLPEmbedder(64, 2, train=ONE_STEP),
        BGRLEmbedder(widths=(64, 32), predictor_channels=64, steps=1),
        TrainedModelEmbedder("sage", hidden_channels=64, train=ONE_STEP),
    ],
    ids=lambda embedder: type(embedder).__name__,
)
def test_the_estimate_is_of_the_right_order(embedder):
    graph = load_dataset("csbm:nodes=3000,features=16")
    held = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        embedder.fit(graph.data(), graph.split(0), seed=0)
    estimate = embedding_bytes(embedder, graph.data())
    # Beside what is held for the backward pass there are gradients and workspaces.
    assert 0.9 * sum(held.values()) < estimate < 5 * sum(held.values())
