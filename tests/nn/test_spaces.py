"""Spaces made of edges against brute force over all pairs of nodes."""

import math

import networkx as nx
import pytest
import torch

from ecg_gnn.nn import spaces
from toy_graphs import directed_edges, undirected_edges

NUM_NODES = 17


def both(edges, num_nodes=NUM_NODES):
    """The matrix, and networkx's graph, of the same edges."""
    graph = nx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from((u, v) for u, v in edges.t().tolist() if u != v)
    return spaces.neighbourhoods(edges, num_nodes), graph


GRID = torch.tensor(
    [
        (9 * row + column, 9 * (row + down) + column + 1 - down)
        for row in range(9)
        for column in range(9)
        for down in (0, 1)
        if row + down < 9 and column + 1 - down < 9
    ]
).t()


@pytest.mark.parametrize("edges", [undirected_edges(), directed_edges()])
def test_edges_count_once_in_both_directions(edges):
    loops = torch.tensor([[3, 4], [3, 4]])
    matrix, graph = both(torch.cat([edges, edges, loops], dim=1))
    expected = nx.to_numpy_array(graph, nodelist=range(NUM_NODES))
    assert (matrix.toarray() == expected).all()


@pytest.mark.parametrize("cells", [1, 60, 2**26])
def test_rings_are_the_degrees_at_every_distance(cells, monkeypatch):
    monkeypatch.setattr(spaces, "_CELLS", cells)  # rows one by one, by threes, at once
    edges, graph = both(directed_edges())
    rings = spaces.degree_rings(edges, 3)
    bins = {u: math.floor(4 * math.log2(1 + d)) for u, d in graph.degree()}
    assert rings.shape == (NUM_NODES, 4, 1 + max(bins.values()))
    expected = torch.zeros_like(rings)
    for u, distances in nx.all_pairs_shortest_path_length(graph):
        for hop in range(4):
            ring = [v for v, distance in distances.items() if distance == hop]
            for v in ring:
                expected[u, hop, bins[v] :] += 1 / len(ring)
    torch.testing.assert_close(rings, expected)


def test_isomap_of_few_nodes_is_classical_scaling():
    edges, graph = both(GRID, 81)
    far = torch.from_numpy(nx.floyd_warshall_numpy(graph)).square()[:60, :60]
    few = spaces.neighbourhoods(GRID[:, (GRID < 60).all(0)], 60)
    centre = torch.eye(60) - 1 / 60
    values, vectors = torch.linalg.eigh(-0.5 * centre.double() @ far @ centre.double())
    placed = vectors[:, -3:] * values[-3:].sqrt()
    got = spaces.isomap(few, 3).double()
    torch.testing.assert_close(
        torch.cdist(got, got), torch.cdist(placed, placed), atol=1e-4, rtol=1e-4
    )
    assert edges.shape == (81, 81)


def test_isomap_of_a_grid_is_the_grid():
    z = spaces.isomap(both(GRID, 81)[0], 2)
    rows, columns = (torch.arange(81) // 9).float(), (torch.arange(81) % 9).float()
    walk = (rows[:, None] - rows).abs() + (columns[:, None] - columns).abs()
    pair = torch.stack([torch.cdist(z, z).flatten(), walk.flatten()])
    assert torch.corrcoef(pair)[0, 1] > 0.95


def test_parts_that_no_path_joins_are_apart():
    path = torch.stack([torch.arange(9), torch.arange(1, 10)])
    z = spaces.isomap(both(torch.cat([path, path + 10], dim=1), 20)[0], 2)
    apart = torch.cdist(z[:10], z[10:]).min()
    assert apart > torch.cdist(z[:10], z[:10])[0, 5]


@pytest.mark.parametrize("num_nodes", [1, 2, 5])
def test_without_edges_everything_is_finite(num_nodes):
    edges = spaces.neighbourhoods(torch.zeros(2, 0, dtype=torch.long), num_nodes)
    assert spaces.degree_rings(edges, 2)[:, 1:].sum() == 0
    for z in (spaces.isomap(edges, 4), spaces.poincare(edges)):
        assert z.isfinite().all()
    assert spaces.isomap(edges, 4).shape == (num_nodes, 4)


def test_neighbours_are_near_in_the_disc():
    edges, graph = both(GRID, 81)
    z = spaces.poincare(edges)
    assert (z.norm(dim=1) < 1).all()
    far = spaces.hyperbolic_distance(z[:, None], z[None])
    linked = torch.from_numpy(nx.to_numpy_array(graph)).bool()
    assert far[linked].mean() < 0.6 * far[~linked & ~torch.eye(81).bool()].mean()


def test_hyperbolic_distance_of_known_points():
    a, b = torch.tensor([0.0, 0.0]), torch.tensor([0.6, 0.0])
    expected = math.log((1 + 0.6) / (1 - 0.6))
    assert spaces.hyperbolic_distance(a, b).item() == pytest.approx(expected, abs=1e-5)


def test_main_axes_keep_what_varies_most():
    generator = torch.Generator().manual_seed(0)
    wide = torch.randn(50, 2, generator=generator) * torch.tensor([5.0, 3.0])
    rows = torch.cat([torch.zeros(50, 3), wide, torch.ones(50, 1)], dim=1)
    z = spaces.main_axes(rows, 2)
    far = spaces.euclidean_distance(z[:, None], z[None])
    expected = spaces.euclidean_distance(wide[:, None], wide[None])
    torch.testing.assert_close(far, expected, atol=1e-5, rtol=1e-5)
