"""Triton's attention against dense float64 formulas."""

import pytest
import torch
from torch.autograd import gradcheck

from ecg_gnn.kernels import (
    Adjacency,
    additive_attention,
    dot_product_attention,
    using_engine,
)
from ecg_gnn.kernels import edge_order as order_module
from kernels.gpu_cases import (
    GRAPHS,
    assert_matches,
    dense_additive,
    dense_dot,
    hub_edges,
    make_graph,
    small_tiles,
    with_gradients,
)
from toy_graphs import random

pytestmark = pytest.mark.slow


def additive_inputs(nodes, channels, heads):
    return [random(nodes, 2, heads), random(nodes, channels, heads, seed=2)]


def dot_inputs(nodes, channels, heads):
    return [random(nodes, 3, channels, heads)]


KERNELS = {
    "additive": (additive_attention, dense_additive, additive_inputs),
    "dot": (dot_product_attention, dense_dot, dot_inputs),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


def check(kernel, name, channels, heads, place, dtype=torch.float64):
    function, formula, make = kernel
    adjacency = make_graph(name).to(place)
    assert_matches(
        lambda *inputs: function(adjacency, *inputs),
        lambda *inputs: formula(adjacency, *inputs),
        make(adjacency.num_nodes, channels, heads),
        place,
        dtype,
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_matches_formula(kernel, name, place):
    check(kernel, name, 5, 8, place)


@pytest.mark.parametrize(
    ("name", "channels"), [("hub", 3), ("dropped", 1), ("dropped", 16)]
)
def test_one_head(kernel, name, channels, place):
    check(kernel, name, channels, 1, place)


@pytest.mark.parametrize(("name", "heads"), [("hub", 8), ("dropped", 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_other_types(kernel, name, dtype, heads, place):
    check(kernel, name, 6, heads, place, dtype)


@pytest.mark.parametrize(("name", "heads"), [("hub", 8), ("dropped", 1)])
def test_rows_longer_than_tiles(kernel, name, heads, place, monkeypatch):
    """Also long and short rows apart, as many-degreed graphs have them."""
    small_tiles(monkeypatch)
    monkeypatch.setattr(order_module, "_DEGREE_LIMITS", (9, 3))
    check(kernel, name, 5, heads, place)


def test_wide_rows(kernel, place):
    """More channels than a warp has lanes: each thread takes several."""
    check(kernel, "directed", 130, 1, place)
    check(kernel, "directed", 40, 8, place)


@pytest.mark.parametrize("name", ["repeated", "dropped"])
def test_gradcheck(kernel, name, place):
    function, _, make = kernel
    adjacency = make_graph(name).to(place)
    inputs = make(adjacency.num_nodes, 3, 2)
    leaves = [tensor.to(place).requires_grad_() for tensor in inputs]
    assert gradcheck(lambda *given: function(adjacency, *given), leaves, fast_mode=True)


def test_slope(place):
    adjacency = make_graph("directed").to(place)
    inputs = [t.to(place) for t in additive_inputs(adjacency.num_nodes, 3, 2)]
    found = {}
    for slope in (0, 0.5):
        with using_engine("reference"):
            expected = with_gradients(
                lambda s, v, x=slope: additive_attention(
                    adjacency, s, v, negative_slope=x
                ),
                inputs,
            )
        got = with_gradients(
            lambda s, v, x=slope: additive_attention(adjacency, s, v, negative_slope=x),
            inputs,
        )
        for ours, theirs in zip(got, expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)
        found[slope] = got[0]
    assert not torch.allclose(found[0], found[0.5])


@pytest.mark.parametrize("size", [1e4, -1e4])
def test_large_scores_stay_finite(size, place):
    """All neighbours weigh the same, however large the scores are."""
    adjacency = make_graph("hub").to(place)
    nodes = adjacency.num_nodes
    scores = torch.full((nodes, 2, 2), size, device=place, requires_grad=True)
    out = additive_attention(adjacency, scores, torch.ones(nodes, 3, 2, device=place))
    out.sum().backward()
    has_edges = adjacency.in_degree > 0
    torch.testing.assert_close(out[has_edges], torch.ones_like(out[has_edges]))
    assert not out[~has_edges].any()
    torch.testing.assert_close(scores.grad, torch.zeros_like(scores), atol=1e-3, rtol=0)


def test_one_huge_score_takes_all(place):
    """Lanes of a tile that saw none of it must not spoil it when they are merged."""
    adjacency = make_graph("hub").to(place)
    packed = torch.zeros(adjacency.num_nodes, 3, 4, 2, device=place)
    packed[:, 0] = 100.0
    packed[3, 1] = 100.0  # the key of node 3 is the one that every query asks for
    packed[:, 2] = torch.arange(adjacency.num_nodes, device=place)[:, None, None]
    out = dot_product_attention(adjacency, packed)
    torch.testing.assert_close(out[0], torch.full_like(out[0], 3.0))


STRIDED = {
    "last axes swapped": lambda t: t.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second node": lambda t: torch.stack([t, -t], dim=1)[:, 0],
}


@pytest.mark.parametrize("how", STRIDED)
def test_strided_inputs_and_gradients(kernel, how, place):
    function, _, make = kernel
    adjacency = make_graph("dropped").to(place)
    inputs = [t.to(place) for t in make(adjacency.num_nodes, 3, 2)]
    strided = [STRIDED[how](tensor) for tensor in inputs]
    assert not any(tensor.is_contiguous() for tensor in strided)
    found = []
    for given in (inputs, strided):
        leaves = [tensor.detach().requires_grad_() for tensor in given]
        out = function(adjacency, *leaves)
        out.sum().backward()  # its gradient is one number for all places
        found.append([out, *(leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


def test_same_to_the_bit_every_time(kernel, place):
    function, _, make = kernel
    adjacency = make_graph("hub").to(place)
    inputs = [t.to(place, torch.float32) for t in make(adjacency.num_nodes, 5, 8)]
    first, second = (
        with_gradients(lambda *given: function(adjacency, *given), inputs)
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("channels", [8, 37, 64])
def test_engines_agree_on_a_large_graph(kernel, channels, place):
    """Rows of thousands of edges, eight heads, in float32."""
    if place.type == "cpu":
        pytest.skip("too much for Triton's interpreter")
    function, _, make = kernel
    adjacency = Adjacency.from_edge_index(hub_edges(3000, 3), 3000).to(place)
    torch.manual_seed(0)
    adjacency = adjacency.drop_edges(0.5)
    inputs = [t.to(place, torch.float32) for t in make(3000, channels, 8)]

    def attend(*given):
        return function(adjacency, *given)

    fast, again = (with_gradients(attend, inputs) for _ in range(2))
    with using_engine("reference"):
        exact = with_gradients(attend, [tensor.double() for tensor in inputs])
    for ours, same, theirs in zip(fast, again, exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4, rtol=1e-4)
        assert torch.equal(ours, same)


@pytest.mark.parametrize("heads", [3, 6])
def test_other_numbers_of_heads_are_left_to_the_reference(kernel, heads, place):
    """Tiles have powers of two; what does not fit must still be right."""
    check(kernel, "directed", 4, heads, place)
