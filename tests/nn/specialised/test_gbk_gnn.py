"""GBK-GNN against two dense kernels; gates learn which neighbours agree."""

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.nn.network import Known
from specialised_nets import (
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    linear,
    matrix,
    random_walk,
)
from toy_graphs import random


def gates(layer, h):
    scores = linear(layer.score, h)
    return F.leaky_relu(scores[None, :, 0] + scores[:, None, 1], 0.2)  # [u, v]


@pytest.mark.parametrize("edges", EDGES)
def test_matches_two_dense_kernels(edges):
    net = build("gbk-gnn", num_layers=2)
    graphs = graphs_for("gbk-gnn", EDGES[edges])
    mean = random_walk(matrix(graphs[0]))
    state = x = random(NUM_NODES, FEATURES)
    for layer in net.layers:
        s = gates(layer, state).sigmoid()
        alike = (mean * s) @ linear(layer.same, state)
        unlike = (mean * (1 - s)) @ linear(layer.different, state)
        state = (linear(layer.own, state) + alike + unlike).relu()
    assert_close(net.represent(x, graphs), state)
    assert_close(net(x, graphs), linear(net.output, state))


def test_equal_kernels_are_plain_sage():
    """The gate has no say where both kernels are the same."""
    net = build("gbk-gnn", num_layers=1)
    layer = net.layers[0]
    layer.different.weight.data = layer.same.weight.data
    graphs = graphs_for("gbk-gnn", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    plain = random_walk(matrix(graphs[0])) @ linear(layer.same, x)
    assert_close(net.represent(x, graphs), (linear(layer.own, x) + plain).relu())


def test_loss_of_the_gates_is_over_training_edges():
    net = build("gbk-gnn", num_layers=2, gate_weight=3.0)
    graphs = graphs_for("gbk-gnn", EDGES["directed"])
    x, y = random(NUM_NODES, FEATURES), torch.arange(NUM_NODES) % 3
    index = torch.arange(2, 12)
    net.prepare(Known(x=x, graphs=graphs, train_index=index, train_y=y[index]))
    net.train()(x, graphs)
    between = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.bool)
    between[2:12, 2:12] = True
    between &= matrix(graphs[0]) > 0
    alike = (y[:, None] == y[None]).double()[between]
    state, expected = x, 0
    for layer in net.layers:
        s = gates(layer, state)[between]
        expected = expected + F.binary_cross_entropy_with_logits(s, alike)
        state = layer(state, graphs[0].adjacency)[0].relu()
    got = net.take_extra_loss()
    assert got.item() == pytest.approx(3 * expected.item(), rel=1e-5)
    assert net.take_extra_loss() is None


def test_no_loss_without_training_edges():
    net = build("gbk-gnn")
    graphs = graphs_for("gbk-gnn", EDGES["directed"])
    x, index = random(NUM_NODES, FEATURES), torch.tensor([NUM_NODES - 1])
    y = torch.zeros(1, dtype=torch.long)
    net.prepare(Known(x=x, graphs=graphs, train_index=index, train_y=y))
    net.train()(x, graphs)
    assert net.take_extra_loss() is None


def test_gates_learn_which_neighbours_agree():
    net = build("gbk-gnn", num_layers=1, gate_weight=1.0)
    graphs = graphs_for("gbk-gnn", EDGES["undirected"])
    y = torch.arange(NUM_NODES) % 2
    x = random(NUM_NODES, FEATURES)
    x[:, 0], x[:, 1] = y.double(), 1 - y.double()
    index = torch.arange(NUM_NODES)
    net.prepare(Known(x=x, graphs=graphs, train_index=index, train_y=y))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        net.train()(x, graphs)
        loss = net.take_extra_loss()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
