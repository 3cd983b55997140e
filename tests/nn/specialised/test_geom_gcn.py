"""Geom-GCN against dense sums; neighbours in the plane against all pairs."""

import pytest
import torch

from ecg_gnn.nn import spaces
from ecg_gnn.nn.specialised.structural import SPACES, Geometry, latent_pairs
from specialised_nets import EDGES, FEATURES, NUM_NODES, build, graphs_for, matrix
from toy_graphs import dense, random


def dense_layer(layer, x, geometry):
    adjacencies = [dense(r.edge_index(), NUM_NODES) for r in geometry.relations]
    adjacencies.append(torch.eye(NUM_NODES, dtype=torch.float64))
    scale = sum(adjacencies).sum(1).rsqrt()
    blocks = layer.lin.weight.chunk(9)
    parts = [
        scale[:, None] * a * scale @ x @ w.t()
        for a, w in zip(adjacencies, blocks, strict=True)
    ]
    return torch.stack(parts, dim=1)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("space", SPACES)
def test_matches_dense_sums(edges, space):
    net = build("geom-gcn", num_layers=3, space=space)
    graphs = graphs_for("geom-gcn", EDGES[edges])
    geometry = net._geometry(graphs[0].adjacency)
    state = x = random(NUM_NODES, FEATURES)
    for layer in net.layers[:-1]:
        state = dense_layer(layer, state, geometry).relu().flatten(1)
    expected = dense_layer(net.layers[-1], state, geometry).mean(1)
    assert_close = torch.testing.assert_close
    assert_close(net(x, graphs), expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("space", SPACES)
def test_quadrants_share_out_both_neighbourhoods(edges, space):
    graph = graphs_for("geom-gcn", EDGES[edges])[0]
    relations = Geometry.of(graph.adjacency, space).relations
    given, latent = (
        sum(dense(r.edge_index(), NUM_NODES) for r in part)
        for part in (relations[:4], relations[4:])
    )
    assert torch.equal(given, matrix(graph).fill_diagonal_(0))
    assert latent.max() == 1
    assert latent.sum() == given.sum()
    assert not latent.diagonal().any()


def test_opposite_neighbours_are_in_opposite_quadrants():
    undirected = graphs_for("geom-gcn", EDGES["undirected"])[0].adjacency
    one, two, three, four = (
        dense(r.edge_index(), NUM_NODES)
        for r in Geometry.of(undirected, "isomap").relations[:4]
    )
    assert torch.equal(one, four.t())
    assert torch.equal(two, three.t())


@pytest.mark.parametrize("hyperbolic", [False, True])
def test_pairs_in_the_plane_are_the_closest(hyperbolic):
    place = random(60, 2)
    place = 0.9 * place / place.norm(dim=1).max()
    pairs = latent_pairs(place, 240, hyperbolic=hyperbolic)
    distance = spaces.euclidean_distance
    if hyperbolic:
        distance = spaces.hyperbolic_distance
    far = distance(place[:, None], place[None]).fill_diagonal_(torch.inf)
    closest = far.flatten().sort().values[:240]
    got = distance(*place[pairs])
    assert got.max() <= 1.2 * closest.max()  # at most sixteen are kept for a node
    assert pairs[1].bincount(minlength=60).max() <= 16


def test_geometry_is_made_once():
    net, graphs = build("geom-gcn"), graphs_for("geom-gcn", EDGES["directed"])
    first = net._geometry(graphs[0].adjacency)
    net(random(NUM_NODES, FEATURES), graphs)
    assert net._geometry(graphs[0].adjacency) is first
