"""Weak classifiers that do not fit into memory say what to lower."""

import pytest

from ecg_gnn.embed import (
    EmbeddingCache,
    TrainedModelEmbedder,
)
from ecg_gnn.pipeline import Workspace, embed, embed_together, method
from ecg_gnn.pipeline import embed_ahead as ahead
from small_runs import resolved, small_board


def run_out(*_, **__):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")


@pytest.mark.parametrize(
    ("name", "what", "option"),
    [("mlp", "MLP", "--embed-hidden"), ("bgrl", "BGRL", "--embed-hidden")],
)
def test_says_what_to_lower(name, what, option, monkeypatch):
    monkeypatch.setattr(method, "embed_nodes", run_out)
    board = small_board()
    config = resolved(board, name)
    message = (
        rf"^the {what} embedding of 64 nodes does not fit into the .* that are left on "
        rf"cpu: lower {option} \(now 8\), or bring embeddings along "
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
    message = r"^the MLP→GNN embedding of 64 nodes .* lower --hidden \(now 8\)"
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
