"""Sparse aggregation against dense float64 formulas and gradcheck."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from ecg_gnn.kernels import (
    Adjacency,
    additive_attention,
    dot_product_attention,
    dropout,
    neighbour_mean,
    neighbour_sums,
    normalized_sum,
    using_engine,
)
from ecg_gnn.kernels.compiled.building import library
from ecg_gnn.system.checks import InputError


def directed_graph(num_nodes=17, num_edges=60, seed=0):
    """Random directed edges, with a hub (node 0) and an isolated node (the last)."""
    g = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes - 1, (2, num_edges), generator=g)
    hub = torch.stack(
        [torch.arange(1, num_nodes - 1), torch.zeros(num_nodes - 2).long()]
    )
    edges = torch.cat([edges, hub], dim=1)
    return torch.unique(edges, dim=1), num_nodes


def dense(adjacency):
    """A[u, v] = 1 where a kept edge v -> u is."""
    matrix = torch.zeros(adjacency.num_nodes, adjacency.num_nodes, dtype=torch.float64)
    source, target = adjacency.edge_index()
    matrix[target, source] = 1
    return matrix


def dense_softmax(scores, mask):
    """Row-wise softmax of [H, N, N] over a 0/1 mask; empty rows are zero."""
    scores = scores.masked_fill(mask == 0, -math.inf)
    return torch.nan_to_num(scores.softmax(-1), 0.0)


def graphs():
    edges, num_nodes = directed_graph()
    whole = Adjacency.from_edge_index(edges, num_nodes)
    torch.manual_seed(5)
    none_left = whole.drop_edges(1.0)
    return {"whole": whole, "dropped": whole.drop_edges(0.5), "none": none_left}


@pytest.fixture(params=["fast", "reference"], autouse=True)
def engine(request):
    """Every test holds for the compiled kernels and for their plain-torch reference."""
    if request.param == "fast" and library() is None:
        pytest.skip("no C++ compiler: nothing but the reference")
    with using_engine(request.param):
        yield request.param


@pytest.fixture(params=["whole", "dropped", "none"])
def adjacency(request):
    return graphs()[request.param]


def random(*shape, seed=1):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=g)


def test_orders_describe_the_same_edges():
    edges, num_nodes = directed_graph()
    shuffled = edges[:, torch.randperm(edges.size(1), generator=torch.Generator())]
    adjacency = Adjacency.from_edge_index(shuffled, num_nodes)
    by_target = {
        *zip(adjacency.source.tolist(), adjacency.target.tolist(), strict=True)
    }
    source = torch.repeat_interleave(
        torch.arange(num_nodes), adjacency.by_source.offsets.diff()
    )
    by_source = {*zip(source.tolist(), adjacency.by_source.other.tolist(), strict=True)}
    assert by_target == by_source == {*map(tuple, edges.t().tolist())}
    assert torch.equal(
        adjacency.target[adjacency.by_source_order], adjacency.by_source.other
    )


def test_self_loops_are_added_once():
    edges = torch.tensor([[0, 1, 2], [0, 2, 1]])
    adjacency = Adjacency.from_edge_index(edges, 4, add_self_loops=True)
    pairs = adjacency.edge_index().t().tolist()
    assert sorted(pairs) == [[0, 0], [1, 1], [1, 2], [2, 1], [2, 2], [3, 3]]


def test_normalized_sum_matches_dense(adjacency):
    x = random(adjacency.num_nodes, 5)
    matrix = dense(adjacency)
    scale_in = matrix.sum(1).clamp_min(1).rsqrt()
    scale_out = matrix.sum(0).clamp_min(1).rsqrt()
    expected = (scale_in[:, None] * matrix * scale_out) @ x
    torch.testing.assert_close(
        normalized_sum(adjacency, x), expected, atol=1e-12, rtol=0
    )


def test_neighbour_mean_matches_dense(adjacency):
    x = random(adjacency.num_nodes, 5)
    matrix = dense(adjacency)
    expected = matrix @ x / matrix.sum(1, keepdim=True).clamp_min(1)
    torch.testing.assert_close(
        neighbour_mean(adjacency, x), expected, atol=1e-12, rtol=0
    )


def test_additive_attention_matches_dense(adjacency):
    num_nodes = adjacency.num_nodes
    both, values = random(num_nodes, 2, 4), random(num_nodes, 5, 4, seed=3)
    source, target = both.unbind(1)
    scores = torch.nn.functional.leaky_relu(
        source.t()[:, None, :] + target.t()[:, :, None], 0.2
    )
    weight = dense_softmax(scores, dense(adjacency))
    expected = torch.einsum("huv,vch->uch", weight, values)
    got = additive_attention(adjacency, both, values)
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)


def test_dot_product_attention_matches_dense(adjacency, monkeypatch):
    # Several pieces of edges, so that their seams are tested too.
    monkeypatch.setattr(neighbour_sums, "_GATHER_BUDGET", {"cpu": 7 * 36})
    num_nodes = adjacency.num_nodes
    packed = random(num_nodes, 3, 9, 4)
    query, key, values = packed.unbind(1)
    scores = torch.einsum("uch,vch->huv", query, key) / 3
    weight = dense_softmax(scores, dense(adjacency))
    expected = torch.einsum("huv,vch->uch", weight, values)
    got = dot_product_attention(adjacency, packed)
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("heads", [1, 3, 4, 16])
@pytest.mark.parametrize("channels", [1, 9, 40])
def test_edge_dots_match_dense(adjacency, heads, channels):
    """Of all edges: what DropEdge leaves out is up to who asks."""
    a = random(adjacency.num_nodes, channels, heads).requires_grad_()
    b = random(adjacency.num_nodes, channels, heads, seed=2).requires_grad_()
    got = neighbour_sums.edge_dot(adjacency, a, b)
    expected = (a[adjacency.target] * b[adjacency.source]).sum(1)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=0)
    seen = random(*got.shape, seed=3)
    grads = torch.autograd.grad(got, (a, b), seen)
    for grad, want in zip(
        grads, torch.autograd.grad(expected, (a, b), seen), strict=True
    ):
        torch.testing.assert_close(grad, want, atol=1e-12, rtol=0)


def test_edge_dots_of_any_strides(adjacency):
    rows = random(2, adjacency.num_nodes, 6).transpose(0, 1)
    a, b = rows[:, 0, :, None], rows[:, 1, ::1, None].expand(-1, -1, 2)
    expected = (a.expand_as(b)[adjacency.target] * b[adjacency.source]).sum(1)
    got = neighbour_sums.edge_dot(adjacency, a.expand_as(b), b)
    torch.testing.assert_close(got, expected, atol=1e-12, rtol=0)


def test_large_scores_stay_finite():
    edges, num_nodes = directed_graph()
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    huge = torch.full((num_nodes, 2, 2), 1e4)
    out = additive_attention(adjacency, huge, torch.ones(num_nodes, 3, 2))
    assert torch.isfinite(out).all()
    has_edges = adjacency.in_degree > 0
    torch.testing.assert_close(out[has_edges], torch.ones_like(out[has_edges]))
    assert not out[~has_edges].any()


@pytest.mark.parametrize("kernel", [normalized_sum, neighbour_mean])
def test_gradients_of_sums(adjacency, kernel):
    x = random(adjacency.num_nodes, 3).requires_grad_()
    assert gradcheck(lambda rows: kernel(adjacency, rows), (x,))


def test_gradients_of_additive_attention(adjacency):
    n = adjacency.num_nodes
    inputs = (random(n, 2, 2), random(n, 3, 2, seed=3))
    inputs = tuple(tensor.requires_grad_() for tensor in inputs)
    assert gradcheck(lambda s, v: additive_attention(adjacency, s, v), inputs)


def test_gradients_of_dot_product_attention(adjacency):
    packed = random(adjacency.num_nodes, 3, 3, 2).requires_grad_()
    assert gradcheck(lambda qkv: dot_product_attention(adjacency, qkv), (packed,))


def test_drop_edges_drops_about_the_rate():
    edges = torch.randint(100, (2, 20_000), generator=torch.Generator().manual_seed(0))
    adjacency = Adjacency.from_edge_index(edges, 100)
    torch.manual_seed(0)
    dropped = adjacency.drop_edges(0.3)
    assert abs(dropped.kept.float().mean().item() - 0.7) < 0.02
    assert dropped.in_degree.sum() == dropped.kept.sum() == dropped.out_degree.sum()
    assert adjacency.kept is None


def test_same_result_on_every_device(device):
    edges, num_nodes = directed_graph()
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    x = random(num_nodes, 6).float()
    expected = normalized_sum(adjacency, x)
    got = normalized_sum(adjacency.to(device), x.to(device)).cpu()
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_engines_agree_on_a_hub(monkeypatch):
    """A node with thousands of neighbours, float32, eight heads, uneven width."""
    num_nodes = 3000
    spokes = torch.arange(1, num_nodes)
    hub = torch.zeros_like(spokes)
    edges = torch.cat([torch.stack([spokes, hub]), torch.stack([hub, spokes])], dim=1)
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    packed = random(num_nodes, 3, 5, 8).float()
    found = []
    for name in ("fast", "reference"):
        leaf = packed.clone().requires_grad_()
        with using_engine(name):
            out = dot_product_attention(adjacency, leaf)
            out.square().sum().backward()
        found.append([out, leaf.grad])
    for fast, reference in zip(*found, strict=True):
        torch.testing.assert_close(fast, reference, atol=2e-4, rtol=1e-4)


def test_number_of_threads_does_not_matter():
    edges, num_nodes = directed_graph(num_nodes=200, num_edges=3000)
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    packed = random(num_nodes, 3, 4, 8).float()
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        leaf = packed.clone().requires_grad_()
        out = dot_product_attention(adjacency, leaf)
        out.square().sum().backward()
        found.append([out, leaf.grad])
    torch.set_num_threads(before)
    for one, two in zip(*found, strict=True):
        assert torch.equal(one, two)


def test_dropout_is_the_same_mask_forward_and_backward():
    x = torch.ones(1001, 7, requires_grad=True)
    torch.manual_seed(3)
    out = dropout(x, 0.25)
    out.sum().backward()
    assert torch.equal(out, x.grad)
    torch.manual_seed(3)
    assert torch.equal(out, dropout(x, 0.25))
    assert not torch.equal(out, dropout(x, 0.25))
    assert out.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (out == 0).float().mean().item() == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_engines_draw_the_same_mask(seed):
    found = []
    for name in ("fast", "reference"):
        torch.manual_seed(seed)
        with using_engine(name):
            found.append(dropout(torch.ones(4097, 3), 0.2))
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (torch.tensor([[0, 1]]), r"'edge_index' must be integer \[2, E\]"),
        (torch.tensor([[0.0], [1.0]]), r"'edge_index' must be integer \[2, E\]"),
        (torch.tensor([[0], [3]]), r"'edge_index' must be in \[0, 2\] \(got 3\)"),
        (torch.tensor([[-1], [0]]), r"'edge_index' must be in \[0, 2\] \(got -1\)"),
    ],
)
def test_edges_are_checked(edges, message):
    with pytest.raises(InputError, match=message):
        Adjacency.from_edge_index(edges, 3)


def test_small_integers_are_edges_too():
    edges = torch.tensor([[0, 1], [1, 2]], dtype=torch.int32)
    x = random(3, 2, 2)
    adjacency = Adjacency.from_edge_index(edges, 3)
    out = dot_product_attention(adjacency, torch.stack([x, x, x], dim=1))
    torch.testing.assert_close(out, torch.stack([torch.zeros_like(x[0]), x[0], x[1]]))


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t[:-1],
        lambda t: t.float(),
        lambda t: t[:, :1],
        lambda t: t[:, 0],
        lambda t: t[..., :2],
        lambda t: t.to("meta"),
    ],
)
def test_additive_attention_checks_what_it_is_given(change):
    edges, num_nodes = directed_graph()
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    scores, values = random(num_nodes, 2, 4), random(num_nodes, 3, 4)
    with pytest.raises(AssertionError):
        additive_attention(adjacency, change(scores), values)


@pytest.mark.parametrize(
    "change", [lambda t: t[:-1], lambda t: t[:, :2], lambda t: t.to("meta")]
)
def test_dot_product_attention_checks_what_it_is_given(change):
    edges, num_nodes = directed_graph()
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    with pytest.raises(AssertionError):
        dot_product_attention(adjacency, change(random(num_nodes, 3, 2, 4)))


def test_slope_may_be_an_integer():
    edges, num_nodes = directed_graph()
    adjacency = Adjacency.from_edge_index(edges, num_nodes)
    scores, values = random(num_nodes, 2, 2), random(num_nodes, 3, 2)
    found = [
        additive_attention(adjacency, scores, values, negative_slope=slope)
        for slope in (0, 0.0)
    ]
    assert torch.equal(*found)


@pytest.mark.parametrize("loops", [False, True])
def test_sorted_edges_are_copied_whatever_their_strides(loops):
    """Pairs as rows, transposed, are not one after another in memory."""
    pairs = torch.tensor([[1, 0], [2, 0], [0, 1], [3, 1], [1, 2], [0, 3]])
    given = pairs.t()
    assert not given.is_contiguous()
    lazy = Adjacency.from_edge_index(given, 4, add_self_loops=loops)
    plain = Adjacency.from_edge_index(given.contiguous(), 4, add_self_loops=loops)
    pairs.zero_()  # what the caller does later is not our business
    assert lazy.by_target.other.is_contiguous()
    assert torch.equal(lazy.edge_index(), plain.edge_index())
    assert torch.equal(lazy.by_source.other, plain.by_source.other)
