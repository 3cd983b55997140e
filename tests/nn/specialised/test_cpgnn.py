"""CPGNN: the compatibility is doubly stochastic, the beliefs those of the formula."""

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.nn.network import Known
from ecg_gnn.nn.specialised.cpgnn import doubly_stochastic
from ecg_gnn.train.state import Weights
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


def prior(net, x):
    return linear(net.hidden, linear(net.input, x).relu()).softmax(1)


def known_of(graphs, y, num_train=9):
    x = random(NUM_NODES, FEATURES)
    index = torch.arange(num_train)
    return Known(x=x, graphs=graphs, train_index=index, train_y=y[index])


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("normalisation", ["symmetric", "none"])
def test_matches_dense_beliefs(edges, normalisation):
    net = build("cpgnn", num_layers=3, normalisation=normalisation)
    graphs = graphs_for("cpgnn", EDGES[edges])
    x = random(NUM_NODES, FEATURES)
    a = matrix(graphs[0])
    a = symmetric(a) if normalisation == "symmetric" else a
    beliefs = start = prior(net, x) - 1 / 3
    for _ in range(3):
        beliefs = start + a @ beliefs @ net.compatibility
    assert_close(net(x, graphs), beliefs + 1 / 3)


@pytest.mark.parametrize("size", [2, 3, 10])
def test_compatibility_is_doubly_stochastic(size):
    found = doubly_stochastic(random(size, size).abs())
    ones = torch.ones(size, dtype=torch.float64)
    assert_close(found.sum(0), ones)
    assert_close(found.sum(1), ones)
    assert_close(found, found.t())
    assert (found > 0).all()


def test_classes_that_never_meet():
    found = doubly_stochastic(torch.zeros(3, 3))
    assert_close(found, torch.full((3, 3), 1 / 3))


def test_estimate_counts_neighbours_of_training_nodes():
    net = build("cpgnn", num_classes=2, normalisation="none")
    graphs = graphs_for("cpgnn", EDGES["undirected"])
    known = known_of(graphs, torch.arange(NUM_NODES) % 2)
    beliefs = prior(net, known.x)
    labels = F.one_hot(known.train_y, 2).double()
    beliefs[:9] = labels
    counts = labels.t() @ (matrix(graphs[0]) @ beliefs)[:9]
    expected = doubly_stochastic(counts) - 0.5
    assert_close(net.estimate(known), expected)
    assert_close(expected.sum(1), torch.zeros(2, dtype=torch.float64))


def test_disagreeing_neighbours_are_recognised():
    """On a bipartite graph of two classes the diagonal ends below zero."""
    left, right = torch.arange(8), torch.arange(8, 16)
    edges = torch.stack([left.repeat_interleave(8), right.repeat(8)])
    graphs = graphs_for("cpgnn", torch.cat([edges, edges.flip(0)], dim=1))
    y = torch.tensor([0] * 8 + [1] * 9)
    index = torch.arange(0, 16, 2)
    x = random(NUM_NODES, FEATURES)
    net = build("cpgnn", num_classes=2, pretrain_steps=0)
    net.prepare(Known(x=x, graphs=graphs, train_index=index, train_y=y[index]))
    assert (net.compatibility.diagonal() < -0.1).all()


def test_extra_loss():
    net = build("cpgnn", pretrain_steps=0, prior_weight=2.0)
    graphs = graphs_for("cpgnn", EDGES["directed"])
    known = known_of(graphs, torch.arange(NUM_NODES) % 3)
    net.prepare(known)
    net.compatibility.data += 0.1
    net.train()(known.x, graphs)
    of_prior = F.nll_loss(prior(net, known.x).log()[:9], known.train_y)
    rows = net.compatibility.sum(1).abs().sum()
    assert_close(net.take_extra_loss(), 2 * of_prior + rows)
    assert net.take_extra_loss() is None  # once
    net.eval()(known.x, graphs)
    assert net.take_extra_loss() is None


def test_the_mlp_is_trained_first():
    net = build("cpgnn", pretrain_steps=30)
    graphs = graphs_for("cpgnn", EDGES["directed"])
    known = known_of(graphs, torch.arange(NUM_NODES) % 3)
    before = F.nll_loss(prior(net, known.x).log()[:9], known.train_y)
    net.prepare(known)
    after = F.nll_loss(prior(net, known.x).log()[:9], known.train_y)
    assert after < 0.8 * before


def test_rounding_does_not_move_the_compatibility():
    """It starts out centred: which side of zero its rows sum to is chance."""
    net = build("cpgnn", pretrain_steps=0)
    graphs = graphs_for("cpgnn", EDGES["directed"])
    known = known_of(graphs, torch.arange(NUM_NODES) % 3)
    net.prepare(known)
    net.compatibility.data += 1e-7
    net.train()(known.x, graphs)
    net.take_extra_loss().backward()
    assert not net.compatibilities.grad.any()


def test_beliefs_are_never_in_half_precision():
    """Neither they nor the compatibility, though the MLP before them is."""
    net = build("cpgnn", num_layers=2).float()
    graphs = graphs_for("cpgnn", EDGES["directed"])
    x = random(NUM_NODES, FEATURES).float()
    with torch.no_grad():
        net.compatibilities += 1e-3  # bf16 has no such numbers
    weights = Weights.of(net)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        found = weights.call(net, x, graphs)
        start = net.prior(x).float().softmax(1) - 1 / 3
    a = symmetric(matrix(graphs[0])).float()
    beliefs = start
    for _ in range(2):
        beliefs = start + a @ beliefs @ net.compatibility
    expected = beliefs + 1 / 3
    assert found.dtype == torch.float32
    assert torch.allclose(found, expected, atol=1e-5)
