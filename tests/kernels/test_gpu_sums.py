"""Triton's sums over neighbours against dense float64 formulas."""

import pytest
import torch
from torch.autograd import gradcheck

from ecg_gnn.kernels import (
    Adjacency,
    engine,
    neighbour_mean,
    normalized_sum,
    using_engine,
)
from ecg_gnn.kernels import edge_order as order_module
from kernels.gpu_cases import (
    GRAPHS,
    assert_matches,
    counts,
    dense_mean,
    dense_sum,
    hub_edges,
    make_graph,
    small_tiles,
    with_gradients,
)
from toy_graphs import random

KERNELS = {
    "normalized_sum": (normalized_sum, dense_sum),
    "neighbour_mean": (neighbour_mean, dense_mean),
}


@pytest.fixture(params=KERNELS)
def kernel(request):
    return KERNELS[request.param]


CASES = [(name, 5) for name in GRAPHS] + [("directed", 1), ("directed", 33)]


@pytest.mark.parametrize(("name", "channels"), CASES)
def test_matches_formula(kernel, name, channels, place):
    function, formula = kernel
    adjacency = make_graph(name).to(place)
    assert_matches(
        lambda x: function(adjacency, x),
        lambda x: formula(adjacency, x),
        [random(adjacency.num_nodes, channels)],
        place,
    )


@pytest.mark.parametrize("name", ["hub", "dropped"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_other_types(kernel, name, dtype, place):
    function, formula = kernel
    adjacency = make_graph(name).to(place)
    assert_matches(
        lambda x: function(adjacency, x),
        lambda x: formula(adjacency, x),
        [random(adjacency.num_nodes, 12)],
        place,
        dtype,
    )


@pytest.mark.parametrize("name", ["hub", "dropped"])
def test_rows_longer_than_tiles(kernel, name, place, monkeypatch):
    """Also long and short rows apart, as many-degreed graphs have them."""
    small_tiles(monkeypatch)
    monkeypatch.setattr(order_module, "_DEGREE_LIMITS", (9, 3))
    function, formula = kernel
    adjacency = make_graph(name).to(place)
    assert adjacency.by_target.offsets.diff().max() > 4
    assert_matches(
        lambda x: function(adjacency, x),
        lambda x: formula(adjacency, x),
        [random(adjacency.num_nodes, 5)],
        place,
    )


@pytest.mark.parametrize("name", ["hub", "dropped"])
def test_gradcheck(kernel, name, place):
    function, _ = kernel
    adjacency = make_graph(name).to(place)
    x = random(adjacency.num_nodes, 3).to(place).requires_grad_()
    assert gradcheck(lambda rows: function(adjacency, rows), (x,), fast_mode=True)


STRIDED = {
    "columns of a wider tensor": lambda x: torch.cat([x, -x], dim=1)[:, : x.size(1)],
    "every second row": lambda x: torch.stack([x, -x], dim=1)[:, 0],
    "transposed": lambda x: x.t().contiguous().t(),
    "one row for all": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("how", STRIDED)
def test_strided_rows(kernel, how, place):
    """Also the gradient may come strided: that of a sum is one number for all."""
    function, _ = kernel
    adjacency = make_graph("dropped").to(place)
    x = STRIDED[how](random(adjacency.num_nodes, 5).to(place))
    assert not x.is_contiguous()
    found = []
    for rows in (x, x.contiguous()):
        leaf = rows.detach().requires_grad_()
        out = function(adjacency, leaf)
        out.sum().backward()
        found.append((out, leaf.grad))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)


def test_same_to_the_bit_every_time(kernel, place):
    function, _ = kernel
    adjacency = make_graph("hub").to(place)
    x = random(adjacency.num_nodes, 12).to(place, torch.float32)
    first, second = (
        with_gradients(lambda x: function(adjacency, x), [x]) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_engines_agree_on_a_large_graph(kernel, place):
    """Rows of thousands of edges and a width that fills no tile, in float32."""
    if place.type == "cpu":
        pytest.skip("too much for Triton's interpreter")
    function, _ = kernel
    adjacency = Adjacency.from_edge_index(hub_edges(3000, 3), 3000).to(place)
    torch.manual_seed(0)
    adjacency = adjacency.drop_edges(0.5)
    x = random(3000, 300).to(place, torch.float32)
    fast, again = (
        with_gradients(lambda x: function(adjacency, x), [x]) for _ in range(2)
    )
    with using_engine("reference"):
        exact = with_gradients(lambda x: function(adjacency, x), [x.double()])
    for ours, same, theirs in zip(fast, again, exact, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=1e-4, rtol=1e-5)
        assert torch.equal(ours, same)


# --- Degrees and patterns -------------------------------------------------------------


@pytest.mark.parametrize("name", GRAPHS)
def test_kept_degrees(name, place):
    functions = engine.gpu_kernels()
    adjacency = make_graph(name).to(place)
    matrix = counts(adjacency)
    arriving = functions.kept_degree(functions.by_target(adjacency))
    leaving = functions.kept_degree(functions.by_source(adjacency))
    assert arriving.tolist() == matrix.sum(1).tolist()
    assert leaving.tolist() == matrix.sum(0).tolist()
    assert adjacency.in_degree.tolist() == arriving.tolist()
    assert adjacency.out_degree.tolist() == leaving.tolist()


@pytest.mark.parametrize("name", GRAPHS)
def test_patterns_describe_the_edges(name, place):
    functions = engine.gpu_kernels()
    adjacency = make_graph(name).to(place)
    nodes = torch.arange(adjacency.num_nodes, device=place)
    for order, own, other in (
        ("by_target", adjacency.target, adjacency.source),
        ("by_source", adjacency.source, adjacency.target),
    ):
        pattern = getattr(functions, order)(adjacency)
        assert {t.dtype for t in (pattern.offsets, pattern.other)} == {torch.int32}
        row = nodes.repeat_interleave(pattern.offsets.diff())
        where = slice(None) if pattern.place is None else pattern.place.long()
        assert torch.equal(own[where], row)
        assert torch.equal(other[where], pattern.other.long())
        sizes = pattern.offsets.diff()[pattern.heavy_first.long()]
        assert torch.equal(sizes, sizes.sort(descending=True).values)
        assert torch.equal(pattern.heavy_first.sort().values.long(), nodes)
        again = getattr(functions, order)(adjacency)
        assert again.offsets is pattern.offsets  # copied once, not in every step
        assert again.heavy_first is pattern.heavy_first


@pytest.mark.parametrize("limits", [(), (3,), (256, 32), (9, 3, 1)])
@pytest.mark.parametrize("name", GRAPHS)
def test_buckets_hold_every_node_once(name, limits, monkeypatch):
    monkeypatch.setattr(order_module, "_DEGREE_LIMITS", limits)
    order = make_graph(name).by_source
    degree = order.offsets.diff()[order.heavy_first.long()].tolist()
    bounds = [*limits, -1]
    end = 0
    for bucket in order.buckets:
        assert (bucket.first, bucket.nodes > 0) == (end, True)
        end += bucket.nodes
        held = degree[bucket.first : end]
        assert max(held) <= bucket.highest
        # No limit lies between them: all could not be cut any further.
        assert not any(min(held) <= limit < max(held) for limit in bounds)
    assert end == len(degree)
