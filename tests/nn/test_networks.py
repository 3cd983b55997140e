"""Both backbones against a forward pass written by hand, and building by name."""

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, TAGConv

from ecg_gnn.config.classify_settings import BACKBONES, model_names
from ecg_gnn.kernels import add_norm
from ecg_gnn.nn import Network, NetworkSpec, build_network, traits_of
from ecg_gnn.nn.benchmark_net import MODULES, BenchmarkNet
from ecg_gnn.nn.tuned_net import TunedNet
from ecg_gnn.system.checks import InputError
from toy_graphs import directed_edges, graph_input, random, undirected_edges

NUM_NODES, FEATURES, CHANNELS, CLASSES = 17, 5, 16, 3


def spec(model, in_channels, hidden, num_classes, layers, num_graphs, dropout, **more):
    return NetworkSpec(
        model=model,
        in_channels=in_channels,
        hidden=hidden,
        num_classes=num_classes,
        layers=layers,
        num_graphs=num_graphs,
        dropout=dropout,
        **more,
    )


def benchmark_net(model, num_graphs=1, num_layers=2):
    torch.manual_seed(4)
    sizes = (FEATURES, CHANNELS, CLASSES, num_layers, num_graphs)
    net = BenchmarkNet(spec(model, *sizes, 0.0)).double()
    scatter_norms(net)
    return net


def scatter_norms(net):
    """Weights of norms start at one and zero, where mistakes would not show."""
    generator = torch.Generator().manual_seed(6)
    for module in net.modules():
        if isinstance(module, torch.nn.LayerNorm | torch.nn.BatchNorm1d):
            module.weight.data.uniform_(0.5, 2, generator=generator)
            module.bias.data.normal_(generator=generator)


def layer_norm(norm, x):
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + 1e-5).sqrt() * norm.weight + norm.bias


def by_hand(net, x, graphs):
    """The benchmark's network, as the specification words it."""
    x = F.gelu(F.linear(x, net.input[0].weight, net.input[0].bias))
    for layer, block in enumerate(net.blocks):
        normed = layer_norm(net.norms[layer], x)
        states = [
            module(normed, graph.adjacency)
            for module, graph in zip(block.branches, graphs, strict=True)
        ]
        if len(states) > 1:
            joined = torch.cat(states, dim=-1)
            states = [F.linear(joined, block.project.weight, block.project.bias)]
        x = x + states[0]
        if net.after:
            norm, feed_forward = net.after[layer]
            x = x + feed_forward(layer_norm(norm, x))
    states = layer_norm(net.output_norm, x)
    return states, F.linear(states, net.output.weight, net.output.bias)


def inputs(num_graphs, self_loops):
    given = graph_input(undirected_edges(), self_loops=self_loops)
    evolved = [graph_input(directed_edges(seed=s)) for s in range(1, num_graphs)]
    return [given, *evolved]


@pytest.mark.parametrize("model", MODULES)
@pytest.mark.parametrize("num_graphs", [1, 2, 3])
def test_benchmark_net_matches_hand_written_forward(model, num_graphs):
    net = benchmark_net(model, num_graphs)
    graphs = inputs(num_graphs, traits_of("benchmark", model).self_loops)
    x = random(NUM_NODES, FEATURES)
    states, logits = by_hand(net, x, graphs)
    torch.testing.assert_close(net.represent(x, graphs), states, atol=1e-10, rtol=0)
    torch.testing.assert_close(net(x, graphs), logits, atol=1e-10, rtol=0)
    assert torch.equal(net(x, graphs), net.classify(net.represent(x, graphs)))


@pytest.mark.parametrize("model", ["gcn", "gt-sep"])
def test_benchmark_net_with_evolved_graphs_in_the_last_layer_alone(model):
    torch.manual_seed(4)
    net = build(model=model, num_graphs=2, layers=3, evolved_layers="last")
    net = net.double().eval()
    assert [len(block.branches) for block in net.blocks] == [1, 1, 2]
    graphs = inputs(2, traits_of("benchmark", model).self_loops)
    state = net.enter(x := random(NUM_NODES, FEATURES))
    for layer in range(3):
        state = net.layer(layer, state, graphs[:1] if layer < 2 else graphs)
    expected = net.classify(net.leave(state))
    torch.testing.assert_close(net(x, graphs), expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize("model", ["resnet", "h2gcn", "polynormer"])
def test_models_without_a_place_for_it_refuse_the_last_layer_alone(model):
    wanted = rf"'evolved_layers' must be .*\['all'\] for the model '{model}'"
    with pytest.raises(InputError, match=wanted):
        build(model=model, num_graphs=1, evolved_layers="last")


@pytest.mark.parametrize("model", MODULES)
@pytest.mark.parametrize("num_graphs", [1, 2])
def test_only_transformers_have_a_feed_forward_block_of_their_own(model, num_graphs):
    net = benchmark_net(model, num_graphs, num_layers=3)
    expected = 3 if model.startswith("gt") else 0  # once per layer, not per graph
    assert len(net.after) == expected


@pytest.mark.parametrize("model", MODULES)
def test_stream_keeps_its_precision_under_autocast(model, monkeypatch):
    """Only what is read from it (norms, products, gathers) is bfloat16."""
    seen = []

    def spy(x, update, norm):
        total, normed = add_norm(x, update, norm)
        seen.append((x.dtype, total.dtype, normed.dtype))
        return total, normed

    monkeypatch.setattr("ecg_gnn.nn.benchmark_net.add_norm", spy)
    net = benchmark_net(model, 2).float()
    graphs = inputs(2, traits_of("benchmark", model).self_loops)
    x = random(NUM_NODES, FEATURES, dtype=torch.float32)
    exact = net(x, graphs)
    seen.clear()
    with torch.autocast("cpu", torch.bfloat16):
        rough = net(x, graphs)
    assert len(seen) > 2
    assert {*seen} == {(torch.float32, torch.float32, torch.bfloat16)}
    torch.testing.assert_close(rough.float(), exact, atol=0.1, rtol=0.05)


# --- The tuned backbone ---------------------------------------------------------------


def pyg_twin(conv, model):
    """PyG's layer with the weights of ours."""
    out_channels, in_channels = conv.lin.weight.shape
    if model == "tag":
        width = in_channels // 4  # three hops, and the node itself
        twin = TAGConv(width, out_channels, bias=False)
        for lin, weight in zip(twin.lins, conv.lin.weight.split(width, 1), strict=True):
            lin.weight.data = weight.data
        return twin.double()
    if model == "gcn":
        twin = GCNConv(in_channels, out_channels, bias=False, add_self_loops=False)
        twin.lin.weight.data = conv.lin.weight.data
    elif model == "sage":
        twin = SAGEConv(in_channels, out_channels, bias=False, root_weight=False)
        twin.lin_l.weight.data = conv.lin.weight.data
    else:
        twin = GATConv(in_channels, out_channels, bias=False, add_self_loops=False)
        twin.lin.weight.data = conv.lin.weight.data
        twin.att_src.data = conv.score_source.weight.data[None]
        twin.att_dst.data = conv.score_target.weight.data[None]
    return twin.double()


def normalised(norm, kind, state):
    if kind == "batch":
        centred = state - state.mean(0)
        scale = (centred.square().mean(0) + 1e-5).sqrt()
        return centred / scale * norm.weight + norm.bias
    return layer_norm(norm, state) if kind == "layer" else state


@pytest.mark.parametrize("model", model_names("tuned"))
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("num_graphs", [1, 2])
def test_tuned_net_matches_pyg(model, norm, num_graphs):
    torch.manual_seed(4)
    sizes = (FEATURES, CHANNELS, CLASSES, 3, num_graphs)
    net = TunedNet(spec(model, *sizes, 0.0, norm=norm)).double()
    scatter_norms(net)
    # PyG normalises GCN by in-degrees alone: equal to ours where graphs are undirected.
    graphs = [
        graph_input(undirected_edges(seed=s), self_loops=True)
        for s in range(num_graphs)
    ]
    x = random(NUM_NODES, FEATURES)
    got = net(x, graphs)
    for layer, skip in enumerate(net.skips):
        state = F.linear(x, skip.weight, skip.bias)
        for branch, graph in zip(net.branches, graphs, strict=True):
            edges = graph.adjacency.edge_index()
            state = state + pyg_twin(branch[layer], model)(x, edges)
        x = normalised(net.norms[layer], norm, state).relu()
    expected = F.linear(x, net.output.weight, net.output.bias)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=0)


def test_tuned_net_with_a_linear_map_before_the_first_layer():
    torch.manual_seed(4)
    sizes = (FEATURES, CHANNELS, CLASSES, 2, 1)
    more = {"norm": "layer", "options": {"input_linear": True}}
    net = TunedNet(spec("gcn", *sizes, 0.0, **more)).double()
    graphs, x = inputs(1, True), random(NUM_NODES, FEATURES)
    rest = TunedNet(spec("gcn", CHANNELS, *sizes[1:], 0.0, norm="layer")).double()
    weights = net.state_dict()
    rest.load_state_dict({n: w for n, w in weights.items() if "input" not in n})
    mapped = F.linear(x, net.input.weight, net.input.bias)
    torch.testing.assert_close(net(x, graphs), rest(mapped, graphs))
    net = TunedNet(spec("gcn", *sizes, 0.5, **more))
    assert not torch.equal(net(x.float(), graphs), net(x.float(), graphs))


@pytest.mark.parametrize("gate", ["none", "node"])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_tuned_net_with_evolved_graphs_in_the_last_layer_alone(gate, num_layers):
    torch.manual_seed(4)
    sizes = (FEATURES, CHANNELS, CLASSES, num_layers, 3)
    more = {"norm": "layer", "gate": gate, "evolved_layers": "last"}
    net = TunedNet(spec("sage", *sizes, 0.0, **more)).double()
    for parameter in net.parameters():  # a gate starts as none
        parameter.data += 0.1 * torch.randn_like(parameter)
    graphs, x = inputs(3, True), random(NUM_NODES, FEATURES)
    given, *evolved = net.branches
    assert [len(branch) for branch in evolved] == [1, 1]
    assert len(net.gates) == (gate == "node")
    state = x
    for layer, (skip, norm) in enumerate(zip(net.skips, net.norms, strict=True)):
        messages = [given[layer](state, graphs[0].adjacency)]
        if layer == num_layers - 1:
            messages += [
                branch[0](state, graph.adjacency)
                for branch, graph in zip(evolved, graphs[1:], strict=True)
            ]
            messages = net.gates[0](state, messages) if net.gates else messages
        state = layer_norm(norm, sum(messages, skip(state))).relu()
    torch.testing.assert_close(net(x, graphs), net.output(state), atol=1e-5, rtol=0)


@pytest.mark.parametrize("given", [1, 2, 4])
def test_tuned_net_refuses_other_graphs_than_it_was_built_for(given):
    net = TunedNet(spec("sage", FEATURES, CHANNELS, CLASSES, 2, 3, 0.0)).double()
    with pytest.raises(ValueError, match="zip"):
        net(random(NUM_NODES, FEATURES), inputs(given, True))


def test_where_evolved_graphs_are_read_is_nothing_to_one_graph():
    sizes = (FEATURES, CHANNELS, CLASSES, 2, 1)
    nets = []
    for layers in ("all", "last"):
        torch.manual_seed(4)
        net = TunedNet(spec("gcn", *sizes, 0.0, evolved_layers=layers))
        nets.append(net.state_dict())
    assert nets[0].keys() == nets[1].keys()
    assert all(torch.equal(nets[0][name], nets[1][name]) for name in nets[0])


def test_tuned_net_drops_after_every_layer():
    net = TunedNet(spec("gcn", FEATURES, 64, CLASSES, 1, 1, 0.5, norm="layer"))
    x, graphs = random(NUM_NODES, FEATURES, dtype=torch.float32), inputs(1, True)
    torch.manual_seed(0)
    dropped = net.represent(x, graphs)
    whole = net.eval().represent(x, graphs)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    assert 0.3 < kept[whole > 0].float().mean() < 0.7


def test_batch_norm_uses_running_statistics_in_evaluation():
    net = TunedNet(spec("gcn", FEATURES, CHANNELS, CLASSES, 1, 1, 0.0, norm="batch"))
    x, graphs = random(NUM_NODES, FEATURES, dtype=torch.float32), inputs(1, True)
    assert not torch.allclose(net(x, graphs), net.eval()(x, graphs))


# --- By name --------------------------------------------------------------------------


def build(**changes):
    settings = {
        "backbone": "benchmark",
        "model": "gcn",
        "in_channels": FEATURES,
        "hidden": CHANNELS,
        "num_classes": CLASSES,
        "layers": 2,
        "num_graphs": 2,
        "dropout": 0.2,
    }
    return build_network(NetworkSpec(**settings | changes))


def every_model():
    return [(b, m) for b in BACKBONES for m in model_names(b)]


@pytest.mark.parametrize(("backbone", "model"), every_model())
@pytest.mark.parametrize("num_graphs", [1, 2, 3])
def test_every_name_builds_and_trains(backbone, model, num_graphs, device):
    net = build(backbone=backbone, model=model, num_graphs=num_graphs).to(device)
    assert isinstance(net, Network)
    graphs = inputs(num_graphs, traits_of(backbone, model).self_loops)
    x = random(NUM_NODES, FEATURES, dtype=torch.float32).to(device)
    logits = net(x, [graph.to(device) for graph in graphs])
    assert logits.shape == (NUM_NODES, CLASSES)
    logits.square().sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@pytest.mark.parametrize(("backbone", "model"), every_model())
@pytest.mark.parametrize(("num_classes", "num_logits"), [(2, 1), (3, 3), (18, 18)])
def test_two_classes_get_one_logit(backbone, model, num_classes, num_logits):
    net = build(backbone=backbone, model=model, num_classes=num_classes, num_graphs=1)
    graphs = inputs(1, True)
    x = random(NUM_NODES, FEATURES, dtype=torch.float32)
    assert net(x, graphs).shape == (NUM_NODES, num_logits)
    assert net.represent(x, graphs).shape == (NUM_NODES, CHANNELS)


def test_names():
    assert BACKBONES == ("benchmark", "tuned")
    assert model_names("benchmark") == list(MODULES)
    assert model_names("tuned") == ["gcn", "sage", "tag", "gat"]


@pytest.mark.parametrize(("backbone", "model"), every_model())
def test_self_loops(backbone, model):
    expected = backbone == "tuned" or model in ("gcn", "gat", "gt")
    assert traits_of(backbone, model).self_loops == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"backbone": "big"},
            r"'backbone' must be one of \['benchmark', 'tuned'\] \(got 'big'\)",
        ),
        (
            {"model": "gin"},
            r"'model' must be one of \['resnet', .*\(got 'gin'; did you mean 'gcn'\?\)",
        ),
        (
            {"backbone": "tuned", "model": "gt"},
            r"'model' must be one of \['gcn', 'sage', 'tag', 'gat'\] .*mean 'gat'",
        ),
        (
            {"model": "gat-sep", "hidden": 20},
            r"'hidden' must be a multiple of 8, .* \(got 20\)",
        ),
        (
            {"model": "gt", "hidden": 12},
            r"'hidden' must be a multiple of 8, .* \(got 12\)",
        ),
    ],
)
def test_refuses(changes, message):
    with pytest.raises(InputError, match=message):
        build(**changes)


def test_width_without_heads_may_be_odd():
    assert build(model="sage", hidden=13).output.in_features == 13
    tuned = build(backbone="tuned", model="gat", hidden=13)
    assert tuned.output.in_features == 13


def test_a_network_of_ones_own_must_say_how():
    net = Network()
    with pytest.raises(NotImplementedError):
        net.represent(torch.ones(1, 1), [])
    with pytest.raises(AttributeError, match="output"):
        net.classify(torch.ones(1, 1))
