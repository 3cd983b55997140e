"""GPR-GNN against dense powers, and APPNP as its fixed point."""

import pytest
import torch
from torch_geometric.nn import APPNP

from ecg_gnn.nn.specialised.hop_filters import hop_weights
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


@pytest.mark.parametrize("edges", EDGES)
def test_matches_dense_powers(edges):
    net = build("gpr-gnn", num_layers=4, num_graphs=2)
    graphs = graphs_for("gpr-gnn", EDGES[edges], directed_edges(seed=8))
    x = random(NUM_NODES, FEATURES)
    hidden = linear(net.input, x).relu()
    expected = torch.zeros(NUM_NODES, 3, dtype=torch.float64)
    weights = net.hop_weights.view(2, 5)
    for weight, layer, graph in zip(weights, net.hidden, graphs, strict=True):
        step = symmetric(matrix(graph))
        for hop in range(5):
            power = torch.linalg.matrix_power(step, hop)
            expected += weight[hop] * power @ linear(layer, hidden)
    assert_close(net(x, graphs), expected)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_is_appnp_while_the_weights_are_where_they_started(alpha):
    net = build("gpr-gnn", num_layers=10, alpha=alpha)
    net.hop_weights.data = hop_weights(alpha, 10).double()
    edges = EDGES["undirected"]
    x = random(NUM_NODES, FEATURES)
    states = linear(net.hidden[0], linear(net.input, x).relu())
    expected = APPNP(K=10, alpha=alpha)(states, edges)
    got = net(x, graphs_for("gpr-gnn", edges))
    # Weights start as float32.
    torch.testing.assert_close(got, expected, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.9, 1.0])
def test_weights_start_as_shares(alpha):
    weights = hop_weights(alpha, 10)
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    assert weights[0] == pytest.approx(alpha)
