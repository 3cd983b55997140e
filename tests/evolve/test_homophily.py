"""Homophily against PyG, against the definitions in plain Python, and real graphs."""

import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.utils import homophily, to_undirected

from ecg_gnn.evolve import (
    adjusted_homophily,
    class_homophily,
    edge_homophily,
    graph_statistics,
    label_informativeness,
    node_homophily,
)
from ecg_gnn.system.checks import InputError

MEASURES = [
    edge_homophily,
    node_homophily,
    class_homophily,
    adjusted_homophily,
    label_informativeness,
]


def random_graph(seed, num_nodes=30, num_edges=90, num_classes=4):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=generator)
    ring = torch.arange(num_nodes)
    edge_index = torch.cat([edge_index, torch.stack([ring, ring.roll(1)])], 1)
    return edge_index, torch.randint(num_classes, (num_nodes,), generator=generator)


@pytest.mark.parametrize("seed", range(5))
def test_matches_pyg(seed, device):
    edge_index, y = (tensor.to(device) for tensor in random_graph(seed))
    for ours, method in [
        (edge_homophily, "edge"),
        (node_homophily, "node"),
        (class_homophily, "edge_insensitive"),
    ]:
        want = homophily(edge_index, y, method=method)
        assert ours(edge_index, y) == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_matches_definitions(seed):
    edge_index, y = random_graph(seed)
    ends = [(int(y[u]), int(y[v])) for u, v in edge_index.t().tolist()]
    single = Counter(c for pair in ends for c in pair)
    p = {c: n / (2 * len(ends)) for c, n in single.items()}
    joint = Counter(pair for a, b in ends for pair in [(a, b), (b, a)])
    q = {pair: n / (2 * len(ends)) for pair, n in joint.items()}
    chance = sum(x * x for x in p.values())
    h_edge = sum(a == b for a, b in ends) / len(ends)
    informativeness = sum(
        x * math.log(x / (p[a] * p[b])) for (a, b), x in q.items()
    ) / -sum(x * math.log(x) for x in p.values())
    assert edge_homophily(edge_index, y) == pytest.approx(h_edge)
    got = adjusted_homophily(edge_index, y)
    assert got == pytest.approx((h_edge - chance) / (1 - chance))
    assert label_informativeness(edge_index, y) == pytest.approx(informativeness)


def test_perfect_and_opposite():
    y = torch.tensor([0, 0, 5, 5])
    inside = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    across = torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
    assert [measure(inside, y) for measure in MEASURES] == pytest.approx([1] * 5)
    assert [measure(across, y) for measure in MEASURES] == pytest.approx(
        [0, 0, 0, -1, 1]
    )


def test_nodes_without_edges_are_left_out():
    y = torch.tensor([0, 0, 1])
    assert node_homophily(torch.tensor([[0, 1], [1, 0]]), y) == 1


def test_directed_end_points_both_count():
    edge_index, y = random_graph(0)
    both = torch.cat([edge_index, edge_index.flip(0)], 1)
    for measure in (edge_homophily, adjusted_homophily, label_informativeness):
        assert measure(edge_index, y) == pytest.approx(measure(both, y))


def test_undefined_is_nan():
    y = torch.tensor([0, 1, 1])
    no_edges = torch.empty(2, 0, dtype=torch.long)
    assert all(math.isnan(measure(no_edges, y)) for measure in MEASURES)
    one_class = torch.zeros(3, dtype=torch.long)
    edge_index = torch.tensor([[0, 1], [1, 2]])
    for measure in MEASURES[2:]:
        assert math.isnan(measure(edge_index, one_class))
    assert edge_homophily(edge_index, one_class) == 1


def test_statistics_count_undirected_edges_once():
    edge_index, y = random_graph(1)
    undirected = to_undirected(edge_index)
    loops = int((undirected[0] == undirected[1]).sum())
    got = graph_statistics(undirected, y, directed=False)
    assert got["num_edges"] == (undirected.size(1) - loops) // 2 + loops
    once = undirected[:, undirected[0] <= undirected[1]]
    assert got["edge_homophily"] == edge_homophily(once, y)
    directed = graph_statistics(undirected, y, directed=True)
    assert directed["num_edges"] == undirected.size(1)
    assert list(got) == [measure.__name__ for measure in MEASURES] + ["num_edges"]


@pytest.mark.parametrize(
    ("edge_index", "y", "message"),
    [
        ([[0, 1], [1, 3]], [0, 1, 1], r"'edge_index' must be in \[0, 2\] \(got 3\)"),
        ([[0, -1], [1, 2]], [0, 1, 1], r"\(got -1\)"),
        ([[0, 1]], [0, 1], r"'edge_index' must be integer \[2, E\]"),
        ([[0], [1]], [[0, 1]], r"'y' must be integer classes \[N\]"),
        ([[0], [1]], [0.0, 1.0], r"'y' must be integer classes"),
        ([[0], [1]], [0, 1], r"must hold both directions"),
    ],
)
def test_errors(edge_index, y, message):
    with pytest.raises(InputError, match=message):
        graph_statistics(torch.tensor(edge_index), torch.tensor(y), directed=False)


@pytest.mark.dataset
@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("minesweeper", (0.683, 0.009, 0.000)),
        ("tolokers", (0.595, 0.093, 0.007)),
        ("roman_empire_glove", (0.047, -0.047, 0.110)),
    ],
)
def test_real_graphs(data_root, name, want):
    path = data_root / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the data folder")
    with np.load(path) as raw:
        edges = torch.from_numpy(raw["edges"]).long().t()
        y = torch.from_numpy(raw["node_labels"]).long()
    both = torch.cat([edges, edges.flip(0)], 1)
    got = graph_statistics(both, y, directed=False)
    assert got["num_edges"] == edges.size(1)
    keys = ("edge_homophily", "adjusted_homophily", "label_informativeness")
    assert [got[key] for key in keys] == pytest.approx(want, abs=6e-4)
