"""H2GCN against dense matrices; two steps away means exactly that."""

import pytest
import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.specialised import h2gcn as module
from ecg_gnn.nn.specialised.base import without_self_loops
from ecg_gnn.nn.specialised.h2gcn import two_hop, two_hop_pairs
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
from toy_graphs import dense, directed_edges, random


def dense_hops(graph):
    one = matrix(graph).fill_diagonal_(0)
    two = ((one @ one > 0) & (one == 0)).double().fill_diagonal_(0)
    return one, two


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("full", [0.0, 1.0])
@pytest.mark.parametrize("normalise", [True, False])
def test_matches_dense_hops(edges, full, normalise, monkeypatch):
    monkeypatch.setattr(module, "_FULL", full)  # 0: as a matrix, 1: as a graph
    net = build("h2gcn", num_graphs=2, normalise_rows=normalise)
    graphs = graphs_for("h2gcn", EDGES[edges], directed_edges(seed=8))
    given = random(NUM_NODES, FEATURES) + 2
    given[3] = 0
    sums = given.sum(1) + (given.sum(1) == 0)
    x = given / sums[:, None] if normalise else given
    found = []
    for layer, graph in zip(net.input, graphs, strict=True):
        one, two = map(symmetric, dense_hops(graph))
        rounds = [linear(layer, x).relu()]
        for _ in range(2):
            rounds.append(torch.cat([one @ rounds[-1], two @ rounds[-1]], dim=1))
        found += rounds
    states = torch.cat(found, dim=1)
    assert states.size(1) == 2 * 7 * 8
    assert_close(net.represent(given, graphs), states)
    assert_close(net(given, graphs), linear(net.output, states))


@pytest.mark.parametrize("edges", EDGES)
def test_pairs_are_those_at_distance_two(edges):
    graph = graphs_for("h2gcn", EDGES[edges])[0]
    _, two = dense_hops(graph)
    pairs = two_hop_pairs(without_self_loops(graph.adjacency))
    assert pairs.size(1) == two.sum()
    assert torch.equal(dense(pairs, NUM_NODES), two)


def test_number_of_paths_does_not_matter():
    """Three paths from 0 to 4 are one pair."""
    edges = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 4, 4, 4]])
    pairs = two_hop_pairs(Adjacency.from_edge_index(edges, 5))
    assert pairs.tolist() == [[0], [4]]


def test_no_pairs():
    none = Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 3)
    assert two_hop_pairs(none).shape == (2, 0)
    x = random(3, 2)
    assert torch.equal(two_hop(none, 0.0)(x, True), torch.zeros_like(x))


def test_pairs_are_found_once(monkeypatch):
    calls = []
    found = two_hop_pairs
    monkeypatch.setattr(module, "two_hop_pairs", lambda a: calls.append(a) or found(a))
    net, graphs = build("h2gcn"), graphs_for("h2gcn", EDGES["directed"])
    for _ in range(3):
        net(random(NUM_NODES, FEATURES), graphs)
    assert len(calls) == 1


def test_pairs_are_dropped_in_training_like_edges():
    graph = graphs_for("h2gcn", EDGES["undirected"])[0]
    two = two_hop(graph.adjacency, 0.5)
    x = random(NUM_NODES, 2)
    assert torch.equal(two(x, False), two(x, False))
    assert not torch.equal(two(x, True), two(x, True))
