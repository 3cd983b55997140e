"""The embedding as further features: no edge, no test label, no label of its own."""

from dataclasses import replace

import pytest
import torch

from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import load_dataset
from ecg_gnn.pipeline import Classification, classify, embed, embed_as_input
from ecg_gnn.pipeline.cross_fit import join_vectors, leave_out
from small_runs import resolved


@pytest.fixture(scope="module")
def board():
    return load_dataset("csbm:nodes=60,features=4")


def with_labels(dataset, y):
    return replace(dataset, y=y)


def cross_fitted(dataset):
    return replaced(resolved(dataset, "mlp"), {"embed.cross_fit": 3})


def test_vectors_are_those_that_make_the_evolved_graph(board):
    config, split = resolved(board, "mlp,bgrl"), board.split(0)
    given = embed_as_input(["mlp", "bgrl"], board, split, config)
    parts = [embed(name, board, split, config) for name in ("mlp", "bgrl")]
    expected = torch.cat([z / z.std() for z in parts], dim=1)
    torch.testing.assert_close(given, expected)
    assert embed_as_input([], board, split, config) is None


def test_the_network_reads_the_vectors_and_no_other_edge(board):
    config, split = resolved(board, "mlp"), board.split(0)
    vectors = torch.randn(
        board.num_nodes, 5, generator=torch.Generator().manual_seed(0)
    )
    plain = Classification(split, [])
    jobs = [plain, plain._replace(vectors=vectors), plain._replace(vectors=-vectors)]
    found = [classify(board, [job], config)[0] for job in jobs]
    losses = [result.losses for _, result in found]
    assert losses[0] != losses[1] != losses[2]
    first = [next(network.parameters()).shape for network, _ in found]
    assert first[1][1] == first[0][1] + 5


def test_test_labels_change_nothing(board):
    config, split = cross_fitted(board), board.split(0)
    y = board.y.clone()
    y[split.test_mask] = 1 - y[split.test_mask]
    given, other = (
        embed_as_input(["mlp"], each, split, config)
        for each in (board, with_labels(board, y))
    )
    assert torch.equal(given, other)


def test_cross_fitted_a_node_does_not_see_its_own_label(board):
    """But for the turn of the spaces, which all nodes decide together."""
    config, split = cross_fitted(board), board.split(0)
    folds, _ = leave_out(split, config)
    node = int((split.train_mask & (folds == 0)).nonzero()[0])
    y = board.y.clone()
    y[node] = 1 - y[node]
    ours = embed_as_input(["mlp"], board, split, config)
    theirs = embed_as_input(["mlp"], with_labels(board, y), split, config)
    # Fold 0 is of the first model, whose space is nobody else's to turn.
    own = folds == 0
    scale = ours[own].norm() / theirs[own].norm()
    torch.testing.assert_close(ours[own], theirs[own] * scale)
    assert not torch.allclose(ours[~own], theirs[~own] * scale)


def test_turned_spaces_are_one_space():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(40, 4, generator=generator, dtype=torch.float64)
    turn = torch.linalg.qr(torch.randn(4, 4, generator=generator).double()).Q
    folds = torch.arange(40) % 2
    torch.testing.assert_close(join_vectors([z, z @ turn], folds), z)
