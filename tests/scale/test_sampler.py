"""What the sampler must give: real, distinct edges, drawn by key and node alone."""

from itertools import combinations

import numpy as np
import pytest
import torch

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput
from ecg_gnn.scale.sampler import GraphSampler, draw_edges, uniform
from toy_graphs import directed_edges, undirected_edges

NUM_NODES = 60


def two_graphs():
    edges = [undirected_edges(NUM_NODES, 400), directed_edges(NUM_NODES, 300, seed=3)]
    return [GraphInput(Adjacency.from_edge_index(each, NUM_NODES)) for each in edges]


def sample(sampler, seeds, step=0):
    return sampler.around(torch.as_tensor(seeds), step)


def sampled_edges(found, graph):
    """The sampled edges of a graph, in the numbers of all nodes."""
    return found.nodes[found.edges[graph][:2]]


def pairs(edges):
    return set(map(tuple, edges.t().tolist()))


SEEDS = [3, 50, 7, 21]


def test_nodes_come_in_the_order_of_hops():
    found = sample(GraphSampler(two_graphs(), [2, 3], 3), SEEDS)
    nodes, per_hop = found.nodes, found.nodes_per_hop
    assert nodes[: len(SEEDS)].tolist() == SEEDS
    assert per_hop[0] == len(SEEDS)
    assert len(per_hop) == 4
    assert sum(per_hop) == nodes.numel() == nodes.unique().numel()


@pytest.mark.parametrize("fanouts", [(2, 3), (1, -1), (100, 1)])
def test_edges_are_real_distinct_and_as_many_as_asked_for(fanouts):
    graphs = two_graphs()
    found = sample(GraphSampler(graphs, fanouts, 2), SEEDS)
    expanded = found.nodes[: sum(found.nodes_per_hop[:2])]
    for index, (given, fanout) in enumerate(zip(graphs, fanouts, strict=True)):
        graph = given.adjacency
        edges = sampled_edges(found, index)
        assert pairs(edges) <= pairs(graph.edge_index())
        assert len(pairs(edges)) == edges.size(1)
        place = found.edges[index][2]
        assert torch.equal(graph.edge_index()[:, place], edges)
        degree = graph.in_degree[expanded]
        wanted = degree if fanout < 0 else degree.clamp_max(fanout)
        got = torch.bincount(edges[1], minlength=NUM_NODES)[expanded]
        assert torch.equal(got, wanted)


def test_evolved_graphs_are_drawn_from_in_the_hops_asked_for():
    found = sample(GraphSampler(two_graphs(), [-1, 2], 3, evolved_hops=1), SEEDS)
    assert all(found.edges_per_hop[0])
    assert found.edges_per_hop[1] == [2 * len(SEEDS), 0, 0]


def test_fewer_evolved_hops_draw_the_same_in_those_there_are():
    graphs = two_graphs()
    found = sample(GraphSampler(graphs, [-1, 2], 3, evolved_hops=1), SEEDS)
    whole = sample(GraphSampler(graphs, [-1, 2], 3), SEEDS)
    first = whole.edges_per_hop[1][0]
    assert torch.equal(whole.edges[1][2, :first], found.edges[1][2])


def test_a_hop_adds_the_edges_of_the_hop_before():
    found = sample(GraphSampler(two_graphs(), [2, 2], 3), SEEDS, step=1)
    ends = torch.tensor(found.nodes_per_hop).cumsum(0).tolist()
    for graph in range(2):
        parts = found.edges[graph][1].split(found.edges_per_hop[graph])
        for hop, targets in enumerate(parts):
            begin = 0 if hop == 0 else ends[hop - 1]
            assert ((begin <= targets) & (targets < ends[hop])).all()


def test_every_neighbour_is_drawn_as_often():
    graph = two_graphs()[0]
    in_degree = graph.adjacency.in_degree
    node = int(in_degree.argmax())
    degree, steps = int(in_degree[node]), 3000
    sampler, drawn = GraphSampler([graph], [3], 1), torch.zeros(NUM_NODES)
    for step in range(steps):
        drawn[sampled_edges(sample(sampler, [node], step), 0)[0]] += 1
    expected = 3 * steps / degree
    assert (drawn[drawn > 0] - expected).abs().max() < 5 * expected**0.5
    assert (drawn > 0).sum() == degree


def test_draws_follow_seed_and_step():
    sampler = GraphSampler(two_graphs(), [2, 2], 2, seed=4)
    first, again = (sample(sampler, SEEDS, 7) for _ in range(2))
    assert torch.equal(first.nodes, again.nodes)
    other_seed = GraphSampler(two_graphs(), [2, 2], 2, seed=5)
    for other in (sample(sampler, SEEDS, 8), sample(other_seed, SEEDS, 7)):
        assert pairs(sampled_edges(other, 0)) != pairs(sampled_edges(first, 0))


def test_all_neighbours_is_the_whole_neighbourhood():
    found = sample(GraphSampler(two_graphs(), [-1, -1], 2), SEEDS)
    reached = set(SEEDS)
    for _ in range(2):
        reached |= {
            source
            for graph in two_graphs()
            for source, target in graph.adjacency.edge_index().t().tolist()
            if target in reached
        }
    assert set(found.nodes.tolist()) == reached


def test_a_node_has_the_same_neighbours_in_every_share_of_a_batch():
    sampler = GraphSampler(two_graphs(), [2, 2], 2, seed=1)
    whole = sample(sampler, SEEDS, 3)
    for share in (SEEDS[:1], SEEDS[1:]):
        part = sample(sampler, share, 3)
        for graph in range(2):
            assert pairs(sampled_edges(part, graph)) <= pairs(
                sampled_edges(whole, graph)
            )


DEGREES = np.array([0, 1, 2, 3, 5, 8, 40, 1000])
OFFSETS = np.concatenate([[0], np.cumsum(DEGREES)])
NODES = np.arange(len(DEGREES))


@pytest.mark.parametrize("fanout", [1, 2, 3, 10, 39])
def test_distinct_edges_of_the_node_itself(fanout):
    place, edge = draw_edges(OFFSETS, NODES, fanout, key=5)
    assert np.array_equal(np.bincount(place, minlength=8), np.minimum(DEGREES, fanout))
    assert len(np.unique(edge)) == len(edge)
    assert ((OFFSETS[place] <= edge) & (edge < OFFSETS[place + 1])).all()


def test_minus_one_is_all():
    place, edge = draw_edges(OFFSETS, NODES[::-1], -1, key=5)
    assert np.array_equal(np.sort(edge), np.arange(OFFSETS[-1]))
    assert np.array_equal(np.bincount(place, minlength=8), DEGREES[::-1])


def test_every_set_is_equally_likely():
    """Pairs out of four edges, drawn by 24,000 nodes."""
    nodes = np.arange(24_000)
    _, edge = draw_edges(4 * np.arange(24_001), nodes, 2, key=9)
    pairs = np.sort(edge.reshape(-1, 2) % 4, axis=1)
    counts = [(pairs == pair).all(1).sum() for pair in combinations(range(4), 2)]
    assert sum(counts) == 24_000
    assert np.abs(np.array(counts) - 4000).max() < 5 * np.sqrt(4000)


def test_a_node_draws_the_same_in_any_company():
    place, edge = draw_edges(OFFSETS, NODES, 3, key=1)
    for node in NODES:
        _, alone = draw_edges(OFFSETS, np.array([node]), 3, key=1)
        assert np.array_equal(alone, edge[place == node])


def test_another_key_draws_others():
    draws = [draw_edges(OFFSETS, NODES[-1:], 5, key=key)[1] for key in range(50)]
    assert len({tuple(edges) for edges in draws}) == 50


def test_uniform_numbers():
    numbers = uniform(np.arange(40_000), key=2**62)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, 10, (0, 1))[0]
    assert np.abs(counts - 4000).max() < 5 * np.sqrt(4000)
    again = uniform(np.arange(40_000), key=2**62, draw=1)
    assert abs(np.corrcoef(numbers, again)[0, 1]) < 0.03
