"""FSGNN against dense powers; its blocks are made once and chosen among."""

import pytest
import torch

from specialised_nets import (
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    linear,
    matrix,
    symmetric,
)
from toy_graphs import random


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
def test_matches_dense_powers(edges, normalisation):
    net = build("fsgnn", num_layers=3, normalisation=normalisation)
    graphs = graphs_for("fsgnn", EDGES[edges])
    x = random(NUM_NODES, FEATURES)
    plain = matrix(graphs[0])
    looped = plain.clone().fill_diagonal_(1)
    if normalisation == "symmetric":
        plain, looped = symmetric(plain), symmetric(looped)
    features = [x]
    for hop in (1, 2, 3):
        features += [torch.linalg.matrix_power(a, hop) @ x for a in (plain, looped)]
    blocks = []
    for share, layer, feature in zip(net.choice.exp(), net.blocks, features):  # noqa: B905
        row = linear(layer, feature)
        length = row.norm(dim=1, keepdim=True)
        blocks.append(share / net.choice.exp().sum() * row / length)
    states = torch.cat(blocks, dim=1).relu()
    assert_close(net.represent(x, graphs), states)
    assert_close(net(x, graphs), linear(net.output, states))


def test_blocks_are_chosen_softly():
    net = build("fsgnn", num_layers=3)
    net.choice.data.fill_(-50.0)
    net.choice.data[3] = 50.0
    states = net.represent(
        random(NUM_NODES, FEATURES), graphs_for("fsgnn", EDGES["directed"])
    )
    used = states.view(NUM_NODES, 7, 8).abs().sum((0, 2)) > 1e-9
    assert used.tolist() == [False] * 3 + [True] + [False] * 3


def test_features_are_propagated_once_per_graph_and_features():
    net, graphs = build("fsgnn"), graphs_for("fsgnn", EDGES["directed"])
    x, calls = random(NUM_NODES, FEATURES), []
    make = net._features._make
    net._features._make = lambda *given: calls.append(1) or make(*given)
    first = net(x, graphs)
    assert torch.equal(first, net(x, graphs))
    assert len(calls) == 1
    x += 1  # the same tensor, but not what it was
    assert not torch.allclose(first, net(x, graphs))
    net(random(NUM_NODES, FEATURES, seed=2), graphs)
    net(x, graphs_for("fsgnn", EDGES["undirected"]))
    assert len(calls) == 4
