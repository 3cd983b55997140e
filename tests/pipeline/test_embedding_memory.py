"""Weak classifiers that do not fit into memory say what to lower."""

import pytest

from ecg_gnn.embed import TrainedModelEmbedder
from ecg_gnn.pipeline import embed, method
from small_runs import resolved, small_board


def run_out(*_, **__):
    raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")


@pytest.mark.parametrize(
    ("name", "what"), [("mlp", "mlp"), ("bgrl", "bgrl"), ("mlp+bgrl", "mlp")]
)
def test_says_what_to_lower(name, what, monkeypatch):
    monkeypatch.setattr(method, "embed_nodes", run_out)
    board = small_board()
    message = (
        rf"^the {what} embedding of 64 nodes does not fit into the .* that are left on "
        r"cpu: lower --embed-hidden \(now 8\), or bring embeddings along \(--emb"
    )
    with pytest.raises(MemoryError, match=message):
        embed(name, board, board.split(0), resolved(board, name))


def test_so_does_a_model_that_embeds(monkeypatch):
    board = small_board()
    inner = method.embed_nodes

    def fails_in_the_end(embedder, *arguments, **options):
        if isinstance(embedder, TrainedModelEmbedder):
            run_out()
        return inner(embedder, *arguments, **options)

    monkeypatch.setattr(method, "embed_nodes", fails_in_the_end)
    with pytest.raises(MemoryError, match=r"^the mlp-gnn embedding .* lower --hidden "):
        embed("mlp-gnn", board, board.split(0), resolved(board, "mlp-gnn"))


def test_what_needs_no_training_has_nothing_to_lower(monkeypatch):
    monkeypatch.setattr(method, "embed_nodes", run_out)
    board = small_board()
    with pytest.raises(RuntimeError, match=r"^DefaultCPUAllocator"):
        embed("features", board, board.split(0), resolved(board, "features"))
