"""The gate between parallel graphs: it starts as nothing, and then has its say."""

import pytest
import torch
from torch_geometric.nn import GCNConv

from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import ECGConv, GraphInput, NetworkSpec, build_network, traits_of
from ecg_gnn.nn.benchmark_net import MODULES
from ecg_gnn.nn.network import NodeGate, ParallelModules
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import seeded
from toy_graphs import directed_edges, graph_input, random, undirected_edges

NUM_NODES, FEATURES, CHANNELS = 17, 5, 16
GATED = {
    "benchmark gcn": ("benchmark", "gcn"),
    "benchmark gt-sep": ("benchmark", "gt-sep"),
    "tuned sage": ("tuned", "sage"),
    "tag": ("benchmark", "tag"),
    "fagcn": ("benchmark", "fagcn"),
    "polynormer": ("benchmark", "polynormer"),
}


def build(backbone, model, gate="node", num_graphs=3):
    options = {"heads": 2, "global_layers": 0} if model == "polynormer" else {}
    with seeded(1, "initialisation"):
        net = build_network(
            NetworkSpec(
                backbone=backbone,
                model=model,
                in_channels=FEATURES,
                hidden=CHANNELS,
                num_classes=3,
                layers=2,
                num_graphs=num_graphs,
                dropout=0.0,
                gate=gate,
                options=options,
            )
        )
    return net.double()


def open_unevenly(net):
    """Gates as training might leave them."""
    generator = torch.Generator().manual_seed(8)
    gates = [module for module in net.modules() if isinstance(module, NodeGate)]
    for gate in gates:
        gate.weight.data.normal_(generator=generator)
        gate.bias.data.normal_(generator=generator)
    return gates


def inputs(backbone, model, order=None, *, weighted=False):
    """Three graphs, the nodes in another order if there is one."""
    place = torch.arange(NUM_NODES) if order is None else order.argsort()
    loops = traits_of(backbone, model).self_loops
    graphs = [graph_input(place[undirected_edges()], self_loops=loops)]
    for seed in (3, 4):
        edges = directed_edges(seed=seed)
        weights = 0.1 + (7 * edges[0] + edges[1]) % 5 / 5
        graphs.append(
            GraphInput(
                Adjacency.from_edge_index(place[edges], NUM_NODES, edge_weight=weights)
            )
            if weighted
            else graph_input(place[edges])
        )
    return graphs


@pytest.fixture(params=GATED)
def kind(request):
    return GATED[request.param]


def test_a_gated_network_starts_as_the_plain_one(kind):
    x, graphs = random(NUM_NODES, FEATURES), inputs(*kind)
    gated, plain = build(*kind).eval(), build(*kind, gate="none").eval()
    extra = set(gated.state_dict()) - set(plain.state_dict())
    assert len(extra) == 4  # a weight and a bias in each of two layers
    torch.testing.assert_close(gated(x, graphs), plain(x, graphs), atol=1e-12, rtol=0)


def test_every_gate_learns_and_has_its_say(kind):
    x, graphs, net = random(NUM_NODES, FEATURES), inputs(*kind), build(*kind)
    before = net(x, graphs)
    before.square().sum().backward()
    gates = open_unevenly(net)
    assert len(gates) == 2
    assert all(gate.weight.grad.any() and gate.bias.grad.any() for gate in gates)
    assert not torch.allclose(net(x, graphs), before)


def test_one_graph_needs_no_gate(kind):
    assert not any(
        isinstance(m, NodeGate) for m in build(*kind, num_graphs=1).modules()
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_renumbered_nodes_get_the_same_logits(kind, weighted):
    net = build(*kind).eval()
    open_unevenly(net)
    order = torch.randperm(NUM_NODES, generator=torch.Generator().manual_seed(4))
    x = random(NUM_NODES, FEATURES)
    expected = net(x, inputs(*kind, weighted=weighted))[order]
    got = net(x[order], inputs(*kind, order, weighted=weighted))
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


def test_weights_matter(kind):
    net, x = build(*kind).eval(), random(NUM_NODES, FEATURES)
    plain, weighted = (net(x, inputs(*kind, weighted=w)) for w in (False, True))
    assert not torch.allclose(plain, weighted)


@pytest.mark.parametrize("weighted", [False, True])
def test_engines_agree(kind, weighted):
    net = build(*kind).float().eval()
    open_unevenly(net)
    x = random(NUM_NODES, FEATURES, dtype=torch.float32)
    found = []
    for engine in ("fast", "reference"):
        with using_engine(engine):
            found.append(net(x, inputs(*kind, weighted=weighted)))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("num_graphs", [2, 3])
def test_matches_a_formula_written_out(num_graphs):
    torch.manual_seed(2)
    make = lambda: MODULES["gcn"](CHANNELS, 0.0)  # noqa: E731
    block = ParallelModules(CHANNELS, num_graphs, make, "node").double()
    (gate,) = open_unevenly(block)
    x, graphs = random(NUM_NODES, CHANNELS), inputs("benchmark", "gcn")[:num_graphs]
    scores = (x @ gate.weight.t() + gate.bias).exp()
    shares = num_graphs * scores / scores.sum(1, keepdim=True)
    torch.testing.assert_close(gate.shares(x), shares)
    expected = block.project.bias
    maps = block.project.weight.split(CHANNELS, dim=1)
    for place, weight in enumerate(maps):
        state = block.branches[place](x, graphs[place].adjacency)
        expected = expected + shares[:, [place]] * state @ weight.t()
    torch.testing.assert_close(block(x, graphs), expected, atol=1e-10, rtol=0)


def test_around_a_pyg_convolution():
    torch.manual_seed(3)
    conv = ECGConv(FEATURES, CHANNELS, GCNConv, gate="node").double()
    x, edges = random(NUM_NODES, FEATURES), [undirected_edges(), directed_edges()]
    before = conv(x, *edges)
    states = [c(x, e) for c, e in zip(conv.convs, edges, strict=True)]
    torch.testing.assert_close(before, conv.lin(torch.cat(states, 1)))
    open_unevenly(conv)
    assert not torch.allclose(conv(x, *edges), before)
    conv.reset_parameters()
    assert not conv.gate.weight.any()
    with pytest.raises(InputError, match=r"'gate' must be one of \['none', 'node'\]"):
        ECGConv(FEATURES, CHANNELS, GCNConv, gate="edge")


@pytest.mark.parametrize("model", ["resnet", "h2gcn", "gpr-gnn", "linkx"])
def test_models_without_a_place_for_it_refuse_it(model):
    assert not traits_of("benchmark", model).gated
    with pytest.raises(InputError, match=f"'gate' must be .* for the model '{model}'"):
        build("benchmark", model, num_graphs=1)
