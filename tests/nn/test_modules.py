"""Every module against PyG's layers or a dense formula, in float64."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import (
    GATConv,
    GCNConv,
    SAGEConv,
    TAGConv,
    TransformerConv,
)

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.benchmark_net import MODULES, NUM_HEADS, FeedForward
from toy_graphs import dense, directed_edges, random, undirected_edges

NUM_NODES, CHANNELS = 17, 16
PER_HEAD = CHANNELS // NUM_HEADS


def make(name, dropout=0.0):
    torch.manual_seed(3)
    return MODULES[name](CHANNELS, dropout).double()


def prepared(edges, module):
    return Adjacency.from_edge_index(edges, NUM_NODES, add_self_loops=module.self_loops)


def feed_forward(module, states):
    """The definition, written out: Linear, GELU by erf, Linear."""
    first, second = module.first, module.second
    hidden = states @ first.weight.t() + first.bias
    hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
    return hidden @ second.weight.t() + second.bias


# Our heads are every eighth channel, PyG's are consecutive ones: ours = theirs[this].
INTERLEAVED = torch.arange(CHANNELS).view(NUM_HEADS, PER_HEAD).t().flatten()


def softmax_over(scores, mask):
    """Softmax of [H, N, N] along the rows of a 0/1 mask; empty rows are zero."""
    weight = scores.exp() * mask
    return weight / weight.sum(-1, keepdim=True).clamp_min(1e-300)


def additive_message(module, x, mask):
    """GAT as a dense formula, each head's scores reading the whole of z."""
    z = module.lin(x)
    source, target = module.score_source(z), module.score_target(z)
    scores = F.leaky_relu(source.t()[:, None, :] + target.t()[:, :, None], 0.2)
    values = z.view(NUM_NODES, PER_HEAD, NUM_HEADS)
    message = torch.einsum("huv,vch->uch", softmax_over(scores, mask), values)
    return z, message.reshape(NUM_NODES, CHANNELS)


def dot_message(module, x, mask):
    split = (NUM_NODES, PER_HEAD, NUM_HEADS)
    query, key, value = (
        lin(x).view(split) for lin in (module.query, module.key, module.value)
    )
    scores = torch.einsum("uch,vch->huv", query, key) / math.sqrt(PER_HEAD)
    message = torch.einsum("huv,vch->uch", softmax_over(scores, mask), value)
    return message.reshape(NUM_NODES, CHANNELS)


def formula(name, module, x, edges):
    """What the table in the modules' documentation says, with dense matrices."""
    mask = dense(edges, NUM_NODES)
    if module.self_loops:
        mask.fill_diagonal_(1)
    if name == "resnet":
        return feed_forward(module.feed_forward, x)
    if name in ("gcn", "tag"):
        scale_in = mask.sum(1).clamp_min(1).rsqrt()
        scale_out = mask.sum(0).clamp_min(1).rsqrt()
        step = scale_in[:, None] * mask * scale_out
        if name == "tag":
            hops = [torch.linalg.matrix_power(step, hop) @ x for hop in range(4)]
            return feed_forward(module.feed_forward, torch.cat(hops, dim=-1))
        return feed_forward(module.feed_forward, step @ x)
    if name == "sage":
        message = mask @ x / mask.sum(1, keepdim=True).clamp_min(1)
        return feed_forward(module.feed_forward, torch.cat([x, message], dim=-1))
    if name.startswith("gat"):
        states = additive_message(module, x, mask)
        read = torch.cat(states, dim=-1) if name == "gat-sep" else states[1]
        return feed_forward(module.feed_forward, read)
    message = dot_message(module, x, mask)
    return module.out(torch.cat([x, message], -1) if name == "gt-sep" else message)


@pytest.mark.parametrize("name", MODULES)
def test_matches_dense_formula(name):
    module, x, edges = make(name), random(NUM_NODES, CHANNELS), directed_edges()
    got = module(x, prepared(edges, module))
    # Degree weights are float32, whatever the states are.
    torch.testing.assert_close(got, formula(name, module, x, edges), atol=1e-6, rtol=0)


def test_gcn_matches_pyg():
    # On an undirected graph d_in = d_out, so PyG's normalisation is ours.
    module, x, edges = make("gcn"), random(NUM_NODES, CHANNELS), undirected_edges()
    conv = GCNConv(CHANNELS, CHANNELS, bias=False).double()
    conv.lin.weight.data = torch.eye(CHANNELS, dtype=torch.float64)
    expected = feed_forward(module.feed_forward, conv(x, edges))
    got = module(x, prepared(edges, module))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


def test_sage_matches_pyg():
    # SAGEConv's two maps are the two halves of our first linear map.
    module, x, edges = make("sage"), random(NUM_NODES, CHANNELS), directed_edges()
    conv = SAGEConv(CHANNELS, CHANNELS).double()
    first, second = module.feed_forward.first, module.feed_forward.second
    conv.lin_r.weight.data, conv.lin_l.weight.data = first.weight.chunk(2, dim=1)
    conv.lin_l.bias.data = first.bias
    expected = second(F.gelu(conv(x, edges)))
    got = module(x, prepared(edges, module))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("hops", [1, 3])
def test_tag_matches_pyg(hops):
    # TAGConv's maps, one per hop, are the parts of our first linear map.
    torch.manual_seed(3)
    module = MODULES["tag"](CHANNELS, 0.0, hops=hops).double()
    x, edges = random(NUM_NODES, CHANNELS), undirected_edges()
    conv = TAGConv(CHANNELS, CHANNELS, K=hops).double()
    first, second = module.feed_forward.first, module.feed_forward.second
    for lin, weight in zip(conv.lins, first.weight.split(CHANNELS, 1), strict=True):
        lin.weight.data = weight.data
    conv.bias.data = first.bias.data
    expected = second(F.gelu(conv(x, edges)))
    got = module(x, prepared(edges, module))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", ["gat", "gat-sep"])
def test_gat_matches_pyg(name):
    # PyG scores each head by its own slice of z: a block-structured score of ours.
    module, x, edges = make(name), random(NUM_NODES, CHANNELS), directed_edges()
    conv = GATConv(
        CHANNELS, PER_HEAD, heads=NUM_HEADS, bias=False, add_self_loops=name == "gat"
    ).double()
    blocks = torch.eye(NUM_HEADS, dtype=torch.float64).repeat_interleave(PER_HEAD, 1)
    with torch.no_grad():
        module.lin.weight.copy_(conv.lin.weight[INTERLEAVED])
        module.lin.bias.zero_()
        module.score_source.weight.copy_(
            (blocks * conv.att_src.reshape(1, -1))[:, INTERLEAVED]
        )
        module.score_target.weight.copy_(
            (blocks * conv.att_dst.reshape(1, -1))[:, INTERLEAVED]
        )
        module.score_source.bias.zero_()
    message = conv(x, edges)[:, INTERLEAVED]
    z = conv.lin(x)[:, INTERLEAVED]
    read = torch.cat([z, message], -1) if name == "gat-sep" else message
    expected = feed_forward(module.feed_forward, read)
    got = module(x, prepared(edges, module))
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", ["gt", "gt-sep"])
def test_gt_matches_pyg(name):
    module, x, edges = make(name), random(NUM_NODES, CHANNELS), directed_edges()
    conv = TransformerConv(
        CHANNELS, PER_HEAD, heads=NUM_HEADS, root_weight=False
    ).double()
    for theirs, ours in (
        (conv.lin_query, module.query),
        (conv.lin_key, module.key),
        (conv.lin_value, module.value),
    ):
        with torch.no_grad():
            theirs.weight[INTERLEAVED] = ours.weight
            theirs.bias[INTERLEAVED] = ours.bias
    adjacency = prepared(edges, module)
    message = conv(x, adjacency.edge_index())[:, INTERLEAVED]
    expected = module.out(torch.cat([x, message], -1) if "sep" in name else message)
    torch.testing.assert_close(module(x, adjacency), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", MODULES)
def test_order_of_edges_does_not_matter(name):
    module, x, edges = make(name), random(NUM_NODES, CHANNELS), directed_edges()
    order = torch.randperm(edges.size(1), generator=torch.Generator().manual_seed(9))
    expected = module(x, prepared(edges, module))
    got = module(x, prepared(edges[:, order], module))
    assert torch.equal(got, expected)


@pytest.mark.parametrize("name", MODULES)
def test_node_numbering_does_not_matter(name):
    module, x, edges = make(name), random(NUM_NODES, CHANNELS), directed_edges()
    new_id = torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(9))
    renamed = torch.empty_like(x)
    renamed[new_id] = x
    expected = module(x, prepared(edges, module))
    got = module(renamed, prepared(new_id[edges], module))[new_id]
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("edges", ["one isolated", "none at all"])
def test_isolated_nodes_stay_finite(name, edges):
    module = make(name).float()
    edge_index = directed_edges()
    if edges == "none at all":
        edge_index = edge_index[:, :0]
    adjacency = Adjacency.from_edge_index(edge_index, NUM_NODES)  # no self-loops
    x = random(NUM_NODES, CHANNELS, dtype=torch.float32).requires_grad_()
    out = module(x, adjacency)
    out.square().sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in module.parameters())


@pytest.mark.parametrize("name", MODULES)
def test_gradient_reaches_every_parameter(name):
    module, edges = make(name), directed_edges()
    out = module(random(NUM_NODES, CHANNELS), prepared(edges, module))
    (out * random(*out.shape, seed=8)).sum().backward()
    # Softmax does not feel what is added to all of a target's scores alike.
    silent = {"key.bias"} if name.startswith("gt") else set()
    for key, parameter in module.named_parameters():
        assert (parameter.grad.abs().max() > 1e-9) != (key in silent), key


@pytest.mark.parametrize("name", MODULES)
def test_reads_the_graph_if_it_says_so(name):
    module, x = make(name), random(NUM_NODES, CHANNELS)
    outs = [module(x, prepared(directed_edges(seed=s), module)) for s in (0, 1)]
    assert torch.equal(*outs) != module.several_graphs


def test_flags_are_those_of_the_benchmark():
    flags = {
        name: (module.self_loops, module.own_feed_forward)
        for name, module in MODULES.items()
    }
    assert flags == {
        "resnet": (False, True),
        "gcn": (True, True),
        "sage": (False, True),
        "tag": (False, True),
        "gat": (True, True),
        "gat-sep": (False, True),
        "gt": (True, False),
        "gt-sep": (False, False),
    }


def test_dropout_acts_in_training_only():
    module, x = FeedForward(CHANNELS, 0.5).double(), random(NUM_NODES, CHANNELS)
    torch.manual_seed(0)
    assert not torch.equal(module(x), module(x))
    module.eval()
    torch.testing.assert_close(module(x), feed_forward(module, x))


def test_feed_forward_drops_twice():
    # The second dropout leaves exact zeros in the output; the first changes the rest.
    module, x = FeedForward(64, 0.5), random(50, 64, dtype=torch.float32)
    torch.manual_seed(0)
    out = module(x)
    assert 0.4 < (out == 0).float().mean() < 0.6
    kept = out != 0
    assert not torch.allclose(out[kept], 2 * module.eval()(x)[kept])
