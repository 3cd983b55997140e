"""WRGAT against dense attention; its relations against all pairs of nodes."""

import math

import networkx as nx
import pytest
import torch
import torch.nn.functional as F
from scipy.stats import wasserstein_distance

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.specialised.structural import structural_relations
from specialised_nets import EDGES, FEATURES, NUM_NODES, build, graphs_for, linear
from toy_graphs import dense, directed_edges, random


def dense_weight(relation):
    """W[u, v] of every edge, zero elsewhere."""
    weight = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.float64)
    source, target = relation.edge_index()
    given = relation.edge_weight
    weight[target, source] = 1.0 if given is None else given.double()
    return weight


def dense_layer(layer, x, relations):
    total = linear(layer.own, x)
    width = total.size(1)
    for index, relation in enumerate(relations):
        values = x @ layer.lin.weight[index * width : (index + 1) * width].t()
        of_source, of_target = layer.score[index].split(width)
        scores = (values @ of_source)[None] + (values @ of_target)[:, None]
        mask = dense(relation.edge_index(), NUM_NODES)
        share = F.leaky_relu(scores, 0.2).exp() * mask
        share = share / share.sum(1, keepdim=True).clamp_min(1e-300)
        count = mask.sum(1, keepdim=True).clamp_min(1)
        total = total + (dense_weight(relation) * share) @ values / count
    return total


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("num_classes", [2, 3])
def test_matches_dense_attention(edges, num_classes):
    net = build("wrgat", num_classes, num_layers=3)
    graphs = graphs_for("wrgat", EDGES[edges])
    relations = net._relations(graphs[0].adjacency)
    assert len(relations) == 4
    state = x = random(NUM_NODES, FEATURES)
    for index, layer in enumerate(net.layers):
        state = dense_layer(layer, state.relu() if index else state, relations)
    if num_classes == 2:  # a column each, as the authors have it, then one logit
        assert state.size(1) == 2
        state = state[:, 1:] - state[:, :1]
    torch.testing.assert_close(net(x, graphs), state, atol=1e-10, rtol=1e-10)


def ring_degrees(graph, hops):
    """Degrees in quarters of an octave, by node and distance."""
    degree = {u: math.floor(4 * math.log2(1 + d)) / 4 for u, d in graph.degree()}
    return {
        u: [[degree[v] for v, far in reached.items() if far == k] for k in range(hops)]
        for u, reached in nx.all_pairs_shortest_path_length(graph)
    }


@pytest.mark.parametrize("edges", [EDGES["undirected"], directed_edges(17, 12)])
def test_weights_are_the_distance_of_degree_sequences(edges):
    adjacency = Adjacency.from_edge_index(edges, NUM_NODES)
    given, *relations = structural_relations(adjacency, 2)
    assert given.by_target is adjacency.by_target  # a copy: it keeps no graph alive
    graph = nx.Graph(edges.t().tolist())
    graph.add_nodes_from(range(NUM_NODES))
    rings = ring_degrees(graph, 3)
    for hop, relation in enumerate(relations):
        found = zip(*relation.edge_index().tolist(), relation.edge_weight, strict=True)
        for v, u, weight in found:
            both = list(zip(rings[u], rings[v], strict=True))[: hop + 1]
            far = sum(wasserstein_distance(a, b) for a, b in both)
            assert weight == pytest.approx(math.exp(-far), rel=1e-5)
        pairs = relation.edge_index()
        assert torch.equal(dense(pairs, 17), dense(pairs, 17).t())
        assert not (pairs[0] == pairs[1]).any()


def test_every_node_meets_those_next_to_it_by_degree():
    """A star of ten: its leaves are alike, its centre like nobody."""
    star = torch.stack([torch.zeros(10, dtype=torch.long), torch.arange(1, 11)])
    _, own, near = structural_relations(Adjacency.from_edge_index(star, 11), 1)
    assert own.num_edges == near.num_edges == 2 * (10 + 9 + 8 + 7)  # ceil(log2 11)
    source, target = own.edge_index()
    among_leaves = (source > 0) & (target > 0)
    assert (own.edge_weight[among_leaves] == 1).all()
    assert (own.edge_weight[~among_leaves] < 0.2).all()


def test_relations_are_found_once():
    net, graphs = build("wrgat"), graphs_for("wrgat", EDGES["directed"])
    first = net._relations(graphs[0].adjacency)
    net(random(NUM_NODES, FEATURES), graphs)
    assert net._relations(graphs[0].adjacency) is first


def test_one_node_has_no_relations():
    none = Adjacency.from_edge_index(torch.zeros(2, 0, dtype=torch.long), 1)
    assert [each.num_edges for each in structural_relations(none, 2)] == [0] * 4
