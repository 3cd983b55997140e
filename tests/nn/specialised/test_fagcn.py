"""FAGCN against a dense gate matrix, and the range of its gates."""

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
from toy_graphs import directed_edges, random


def messages(layer, graph, h):
    of_target, of_source = layer.score.weight[0].split(h.size(1))
    total = (h @ of_target)[:, None] + (h @ of_source)[None] + layer.score.bias
    return (total.tanh() * symmetric(matrix(graph))) @ h


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("num_graphs", [1, 2])
def test_matches_dense_gates(edges, num_graphs):
    net = build("fagcn", num_layers=3, num_graphs=num_graphs, eps=0.4)
    evolved = [directed_edges(seed=8)][: num_graphs - 1]
    graphs = graphs_for("fagcn", EDGES[edges], *evolved)
    x = random(NUM_NODES, FEATURES)
    first = state = linear(net.input, x).relu()
    for layer in net.layers:
        found = [messages(g, graph, state) for g, graph in zip(layer, graphs)]  # noqa: B905
        state = 0.4 * first + sum(found)
    assert_close(net.represent(x, graphs), state)
    assert_close(net(x, graphs), linear(net.output, state))


def test_gates_pass_low_and_high_frequencies():
    """Open at +1 a layer adds neighbours, at -1 it takes them off."""
    net = build("fagcn", num_layers=1, eps=1.0)
    graphs = graphs_for("fagcn", EDGES["undirected"])
    first = linear(net.input, x := random(NUM_NODES, FEATURES)).relu()
    gate = net.layers[0][0].score
    gate.weight.data.zero_()
    for bias, sign in [(30.0, 1), (-30.0, -1)]:
        gate.bias.data.fill_(bias)
        expected = first + sign * symmetric(matrix(graphs[0])) @ first
        assert_close(net.represent(x, graphs), expected)
        eigenvalues = torch.linalg.eigvalsh(
            torch.eye(NUM_NODES) + sign * symmetric(matrix(graphs[0]))
        )
        assert eigenvalues.min() > -1e-6  # a filter of one kind: it never flips signs


def test_gates_are_between_minus_one_and_one():
    net = build("fagcn")
    graphs = graphs_for("fagcn", EDGES["directed"])
    gates = net.layers[0][0].gates(random(NUM_NODES, 8), graphs[0].adjacency)
    assert gates.shape == (EDGES["directed"].size(1), 1)
    assert gates.abs().max() < 1
    assert gates.min() < 0 < gates.max()


def test_dropped_edges_weigh_nothing():
    net = build("fagcn", num_layers=1, eps=0.0)
    adjacency = graphs_for("fagcn", EDGES["directed"])[0].adjacency
    torch.manual_seed(0)
    dropped = adjacency.drop_edges(0.5)
    h = random(NUM_NODES, 8)
    rest = graphs_for("fagcn", dropped.edge_index())[0].adjacency
    gate = net.layers[0][0]
    assert_close(gate(h, dropped), gate(h, rest))
