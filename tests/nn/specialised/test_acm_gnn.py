"""ACM-GNN against dense filters; the channels complement each other."""

import pytest
import torch

from ecg_gnn.nn.specialised.hop_filters import MixedChannels
from specialised_nets import (
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    matrix,
    random_walk,
)
from toy_graphs import random


@pytest.mark.parametrize("edges", EDGES)
def test_matches_dense_filters(edges):
    net = build("acm-gnn", num_layers=2)
    graphs = graphs_for("acm-gnn", EDGES[edges])
    low = random_walk(matrix(graphs[0]))
    assert matrix(graphs[0]).diagonal().all()  # with self-loops
    filters = [low, torch.eye(NUM_NODES) - low, torch.eye(NUM_NODES)]
    state = x = random(NUM_NODES, FEATURES)
    for layer in net.layers:
        weights = layer.lin.weight.chunk(3)
        channels = [
            (f.double() @ state @ w.t()).relu()
            for f, w in zip(filters, weights, strict=True)
        ]
        scores = [(c @ s).sigmoid() for c, s in zip(channels, layer.score, strict=True)]
        shares = (torch.stack(scores, dim=1) @ layer.mix / 3).softmax(1)
        state = 3 * sum(shares[:, i : i + 1] * channels[i] for i in range(3))
    assert_close(net.represent(x, graphs), state)
    assert_close(net(x, graphs), state)


def test_two_classes_have_the_difference_of_their_columns():
    net, graphs = build("acm-gnn", 2), graphs_for("acm-gnn", EDGES["undirected"])
    x = random(NUM_NODES, FEATURES)
    columns = net.represent(x, graphs)
    assert columns.shape == (NUM_NODES, 2)
    assert_close(net(x, graphs)[:, 0], columns[:, 1] - columns[:, 0])


def test_weights_start_where_the_authors_start():
    """Within 1 / sqrt(outputs), scores within one, the mixture within 1 / sqrt(3)."""
    torch.manual_seed(0)
    layer = MixedChannels(50, 400)
    bounds = {layer.lin.weight: 400**-0.5, layer.score: 1, layer.mix: 3**-0.5}
    for weight, bound in bounds.items():
        assert bound / 2 < weight.abs().max() <= bound
    assert layer.score.abs().max() > 0.9
    assert sum(weight.numel() for weight in bounds) == 3 * (50 + 1) * 400 + 9


def test_filters_of_low_and_high_frequencies_add_up_to_the_identity():
    layer = build("acm-gnn").layers[0]
    width = layer.lin.out_features // 3
    layer.lin.weight.data = layer.lin.weight.data[:width].abs().repeat(3, 1)
    adjacency = graphs_for("acm-gnn", EDGES["undirected"])[0].adjacency
    x = random(NUM_NODES, FEATURES).abs()
    low, _, own = layer.channels(x, adjacency).unbind(1)
    # Before the ReLU the high-pass channel is own - low; after it its positive part.
    high = layer.channels(x, adjacency)[:, 1]
    assert_close(high, (own - low).relu())


def test_shares_sum_to_one_and_differ_by_node():
    layer = build("acm-gnn").layers[0]
    adjacency = graphs_for("acm-gnn", EDGES["undirected"])[0].adjacency
    shares = layer.shares(layer.channels(random(NUM_NODES, FEATURES), adjacency))
    assert_close(shares.sum(1), torch.ones(NUM_NODES, dtype=torch.float64))
    assert len({tuple(row) for row in shares.tolist()}) > NUM_NODES // 2
