"""Weighted graphs against dense float64 formulas; all weights at one are none."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from ecg_gnn.kernels import (
    Adjacency,
    additive_attention,
    dot_product_attention,
    gated_sum,
    neighbour_mean,
    neighbour_sum,
    normalized_sum,
    using_engine,
)
from ecg_gnn.system.checks import InputError
from toy_graphs import directed_edges, random

NUM_NODES, CHANNELS, HEADS = 17, 3, 2


def weights_of(edges, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return 0.05 + torch.rand(edges.size(1), generator=generator)


def weighted_graph(weights=None):
    """Edges in no order, as anyone may bring them; the last node has none."""
    edges = directed_edges()
    edges = edges[:, torch.randperm(edges.size(1), generator=torch.Generator())]
    given = weights_of(edges) if weights is None else weights.expand(edges.size(1))
    return Adjacency.from_edge_index(edges, NUM_NODES, edge_weight=given), edges, given


@pytest.fixture(params=["whole", "dropped", "none"])
def case(request):
    """A graph, and its weights as a matrix W[u, v]."""
    adjacency, edges, weights = weighted_graph()
    matrix = torch.zeros(NUM_NODES, NUM_NODES, dtype=torch.float64)
    matrix[edges[1], edges[0]] = weights.double()
    rate = {"whole": 0.0, "dropped": 0.5, "none": 1.0}[request.param]
    if rate:
        torch.manual_seed(5)
        adjacency = adjacency.drop_edges(rate)
        kept = torch.zeros_like(matrix)
        source, target = adjacency.edge_index()
        kept[target, source] = 1
        matrix = matrix * kept
    return adjacency, matrix


@pytest.fixture(params=["fast", "reference"], autouse=True)
def engine(request):
    with using_engine(request.param):
        yield


def or_one(degree):
    return torch.where(degree == 0, 1, degree)


def close(got, expected):
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=1e-10)


def test_sums_match_dense(case):
    adjacency, matrix = case
    x = random(NUM_NODES, 5)
    rows, columns = or_one(matrix.sum(1)), or_one(matrix.sum(0))
    close(neighbour_sum(adjacency, x), matrix @ x)
    close(neighbour_mean(adjacency, x), (matrix / rows[:, None]) @ x)
    scaled = matrix / rows.sqrt()[:, None] / columns.sqrt()
    close(normalized_sum(adjacency, x), scaled @ x)


def dense_softmax(scores, matrix):
    """``w exp(s) / sum``: [H, N, N] over the weights; empty rows are zero."""
    weighed = matrix * scores.exp()
    total = weighed.sum(-1, keepdim=True)
    return weighed / torch.where(total == 0, 1, total)


def test_additive_attention_matches_dense(case):
    adjacency, matrix = case
    scores, values = random(NUM_NODES, 2, HEADS), random(NUM_NODES, CHANNELS, HEADS)
    pairs = scores[None, :, 0] + scores[:, None, 1]  # [u, v, H]
    pairs = torch.nn.functional.leaky_relu(pairs, 0.2).permute(2, 0, 1)
    expected = torch.einsum("huv,vch->uch", dense_softmax(pairs, matrix), values)
    close(additive_attention(adjacency, scores, values), expected)


def test_dot_product_attention_matches_dense(case):
    adjacency, matrix = case
    packed = random(NUM_NODES, 3, CHANNELS, HEADS)
    query, key, values = packed.unbind(1)
    pairs = torch.einsum("uch,vch->huv", query, key) / math.sqrt(CHANNELS)
    expected = torch.einsum("huv,vch->uch", dense_softmax(pairs, matrix), values)
    close(dot_product_attention(adjacency, packed), expected)


def test_gates_are_multiplied_by_weights(case):
    adjacency, matrix = case
    x, gate = random(NUM_NODES, 5), random(adjacency.num_edges, seed=7)
    gates = torch.zeros_like(matrix)
    gates[adjacency.target, adjacency.source] = gate
    close(gated_sum(adjacency, gate, x), (matrix * gates) @ x)


def test_gradients():
    adjacency = weighted_graph()[0]
    x = random(NUM_NODES, 4).requires_grad_()
    for function in (normalized_sum, neighbour_mean):
        assert gradcheck(lambda x, f=function: f(adjacency, x), (x,))
    scores = random(NUM_NODES, 2, HEADS).requires_grad_()
    values = random(NUM_NODES, CHANNELS, HEADS).requires_grad_()
    attend = lambda s, v: additive_attention(adjacency, s, v)  # noqa: E731
    assert gradcheck(attend, (scores, values))


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_weights_of_one_are_no_weights(rate):
    weighted, edges, _ = weighted_graph(torch.ones(1))
    plain = Adjacency.from_edge_index(edges, NUM_NODES)
    if rate:
        torch.manual_seed(2)
        weighted = weighted.drop_edges(rate)
        torch.manual_seed(2)
        plain = plain.drop_edges(rate)
    x = random(NUM_NODES, 8, dtype=torch.float32)
    for function in (normalized_sum, neighbour_mean, neighbour_sum):
        assert torch.equal(function(weighted, x), function(plain, x))
    packed = random(NUM_NODES, 3, CHANNELS, HEADS, dtype=torch.float32)
    torch.testing.assert_close(
        dot_product_attention(weighted, packed), dot_product_attention(plain, packed)
    )


def test_a_graph_keeps_its_weights_where_it_goes():
    adjacency = weighted_graph()[0]
    torch.manual_seed(0)
    moved = adjacency.drop_edges(0.5).to("cpu")
    assert isinstance(moved, Adjacency)
    assert moved.kept is not None
    assert torch.equal(moved.edge_weight, adjacency.edge_weight)


def test_bad_weights_are_refused():
    edges = directed_edges()
    for weights in (torch.ones(3), torch.zeros(edges.size(1))):
        with pytest.raises(InputError, match=r"'edge_weight' must be .* above zero"):
            Adjacency.from_edge_index(edges, NUM_NODES, edge_weight=weights)
