"""Sums over sampled edges: exact where all are sampled, right on average elsewhere."""

from itertools import combinations

import pytest
import torch

from ecg_gnn.kernels import (
    Adjacency,
    SampledAdjacency,
    neighbour_mean,
    normalized_sum,
)
from toy_graphs import directed_edges, random

NUM_NODES = 17


def whole_graph(weighted):
    edges = directed_edges(NUM_NODES, 60)
    if not weighted:
        return Adjacency.from_edge_index(edges, NUM_NODES)
    weights = 0.1 + torch.arange(edges.size(1)) % 7 / 4
    return Adjacency.from_edge_index(edges, NUM_NODES, edge_weight=weights)


def part_of(whole, edges, num_targets=NUM_NODES):
    """Edges of a graph, by their places in target order, as a sample of it."""
    weight = whole.edge_weight[edges] if whole.edge_weight is not None else None
    return SampledAdjacency.from_edge_index(
        torch.stack([whole.source[edges], whole.target[edges]]),
        whole.num_nodes,
        edge_weight=weight,
        num_targets=num_targets,
        whole_in=whole.in_degree,
        whole_out=whole.out_degree,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("aggregate", [normalized_sum, neighbour_mean])
def test_all_edges_give_the_whole_sum(weighted, aggregate):
    whole, x = whole_graph(weighted), random(NUM_NODES, 5, dtype=torch.float32)
    part = part_of(whole, torch.arange(whole.num_edges))
    torch.testing.assert_close(aggregate(part, x), aggregate(whole, x))


@pytest.mark.parametrize("aggregate", [normalized_sum, neighbour_mean])
def test_mean_over_all_samples_is_the_whole_sum(aggregate):
    """Unbiased: every set of two of a node's edges is as likely as any other."""
    whole, x = whole_graph(False), random(NUM_NODES, 5, dtype=torch.float32)
    node = int(whole.in_degree.argmax())
    own = (whole.target == node).nonzero()[:, 0]
    assert own.numel() > 3
    samples = [
        aggregate(part_of(whole, torch.tensor(pair)), x)[node]
        for pair in combinations(own.tolist(), 2)
    ]
    mean = torch.stack(samples).mean(0)
    torch.testing.assert_close(mean, aggregate(whole, x)[node])


def test_drop_edge_on_all_edges_is_that_of_the_whole_graph():
    """But for the sources' degrees, which a part cannot know: they are expected."""
    whole = whole_graph(False)
    part = part_of(whole, torch.arange(whole.num_edges))
    torch.manual_seed(0)
    dropped = part.drop_edges(0.5)
    assert isinstance(dropped, SampledAdjacency)
    assert 0 < dropped.kept.sum() < whole.num_edges
    torch.manual_seed(0)
    expected = whole.drop_edges(0.5)
    some = expected.in_degree > 0
    torch.testing.assert_close(dropped.in_scale[some], expected.in_scale[some])
    torch.testing.assert_close(dropped.mean_scale, expected.mean_scale)
    sources = whole.out_degree > 0
    left = 1 + 0.5 * (whole.out_degree[sources] - 1)
    torch.testing.assert_close(dropped.out_scale[sources], left.rsqrt())


def test_scales_are_finite_where_nothing_was_sampled():
    whole = whole_graph(False)
    part = part_of(whole, torch.arange(1))
    x = random(NUM_NODES, 2, dtype=torch.float32)
    assert normalized_sum(part, x).isfinite().all()
    assert part.in_scale.isfinite().all()
    assert part.out_scale.isfinite().all()


def test_rows_of_targets():
    x = random(NUM_NODES, 2)
    part = part_of(whole_graph(False), torch.arange(0), num_targets=3)
    assert torch.equal(part.at_targets(x), x[:3])
    assert whole_graph(False).at_targets(x) is x
    assert part_of(whole_graph(False), torch.arange(0)).at_targets(x) is x


@pytest.mark.parametrize("weighted", [False, True])
def test_moved_and_dropped_it_stays_what_it_is(weighted, device):
    part = part_of(whole_graph(weighted), torch.arange(20), num_targets=9)
    moved = part.to(device).drop_edges(0.25)
    assert type(moved) is type(part)
    assert moved.num_targets == 9
    assert moved.drop_rate == 0.25
    assert moved.whole_in.device.type == moved.in_scale.device.type == device.type
