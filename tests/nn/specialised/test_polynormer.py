"""Polynormer against its equations, written with dense matrices and PyG's attention."""

import copy

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.nn import build_network, read_options
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import Known, NetworkSpec
from ecg_gnn.nn.specialised.polynormer import _Betas
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, Training
from specialised_nets import (
    CHANNELS,
    EDGES,
    FEATURES,
    NUM_NODES,
    build,
    graphs_for,
    linear,
    matrix,
)
from toy_graphs import directed_edges, make_network, make_task, random, train


def dense_attention(conv, x, adjacency):
    """GAT's softmax over the neighbours, one head after another."""
    messages = []
    values = x @ conv.lin.weight.t()
    for head in range(conv.heads):
        mine = values.view(len(x), conv.heads, -1)[:, head]
        source, target = mine @ conv.att_src[0, head], mine @ conv.att_dst[0, head]
        scores = F.leaky_relu(target[:, None] + source[None], 0.2)
        scores = scores.masked_fill(adjacency == 0, -torch.inf)
        messages.append(scores.softmax(1) @ mine)
    return torch.cat(messages, dim=1)


def layer_norm(norm, x):
    centred = x - x.mean(1, keepdim=True)
    spread = (x.var(1, keepdim=True, unbiased=False) + norm.eps).sqrt()
    return centred / spread * norm.weight + norm.bias


def batch_norm(norm, x):
    """In evaluation, with its running statistics."""
    spread = (norm.running_var + norm.eps).sqrt()
    return (x - norm.running_mean) / spread * norm.weight + norm.bias


def beta_of(betas, layer, kind):
    if kind == "number":
        return betas.beta
    learned = betas.learned[layer]
    return 1 / (1 + (-learned).exp()) if kind == "sigmoid" else learned


def dense_local(net, x, adjacency, kind):
    state, total = linear(net.input, x), 0
    for index, layer in enumerate(net.layers):
        if net.chosen["pre_norm"]:
            state = layer_norm(layer.before, state)
        gate = linear(layer.gate, state).relu()
        heard = dense_attention(layer.neighbours.branches[0].conv, state, adjacency)
        state = heard + linear(layer.own, state)
        if net.chosen["post_norm"]:
            state = batch_norm(layer.after, state)
        state, beta = state.relu(), beta_of(net.betas, index, kind)
        state = (1 - beta) * layer_norm(layer.norm, gate * state) + beta * state
        total = total + state
    return total


def dense_global(net, state, kind):
    parts = net.attention
    state = layer_norm(net.norm, state)
    for index in range(net.chosen["global_layers"]):
        key = linear(parts.keys[index], state).sigmoid()
        value = linear(parts.values[index], state)
        heard = torch.zeros_like(state)
        for head in range(parts.heads):
            mine = slice(head, None, parts.heads)
            shares = key[:, mine] @ key[:, mine].t()  # [N, N]: every node of every one
            shares = shares / shares.sum(1, keepdim=True)
            heard[:, mine] = shares @ value[:, mine]
        gate = linear(parts.gates[index], state) + beta_of(parts.betas, index, kind)
        state = linear(parts.output, layer_norm(parts.norms[index], heard) * gate)
        state = state.relu()
    return state


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("kind", ["number", "channels", "sigmoid"])
@pytest.mark.parametrize(("heads", "norms"), [(1, (0, 0)), (2, (0, 1)), (4, (1, 0))])
def test_matches_its_equations(edges, kind, heads, norms):
    after, before = map(bool, norms)
    settings = {"heads": heads, "beta": 0.3, "beta_form": kind}
    net = build("polynormer", **settings, post_norm=after, pre_norm=before)
    graphs = graphs_for("polynormer", EDGES[edges])
    adjacency = matrix(graphs[0])
    assert adjacency.diagonal().all()
    x = random(NUM_NODES, FEATURES)
    state = dense_local(net, x, adjacency, kind)
    torch.testing.assert_close(net.local(x, graphs), state, atol=1e-9, rtol=1e-9)
    expected = linear(net.output, dense_global(net, state, kind))
    torch.testing.assert_close(net(x, graphs), expected, atol=1e-9, rtol=1e-9)


def test_without_global_layers_the_local_ones_answer():
    net = build("polynormer", heads=2, global_layers=0)
    graphs = graphs_for("polynormer", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    expected = linear(net.local_output, net.local(x, graphs))
    torch.testing.assert_close(net(x, graphs), expected)


def released_size(features, width, classes, layers, of_all):
    """How many weights the equations have, beta learned per layer and channel."""
    square, bias = width * width, width
    local = (square + bias) + (square + 2 * width) + (square + bias) + 3 * width
    of_one = 3 * (square + bias) + 3 * width
    inputs, norm, shared = features * width + bias, 2 * width, square + bias
    heads = 2 * (width * classes + classes)
    return inputs + layers * local + norm + of_all * of_one + shared + heads


@pytest.mark.parametrize("size", [(7, 16, 3, 2, 2), (10, 32, 4, 3, 1)])
def test_has_the_weights_of_its_equations(size):
    features, width, classes, layers, of_all = size
    spec = NetworkSpec(
        model="polynormer",
        in_channels=features,
        hidden=width,
        num_classes=classes,
        layers=layers,
        options={"global_layers": of_all},
    )
    found = sum(weight.numel() for weight in build_network(spec).parameters())
    assert found == released_size(*size)


def test_drops_features_states_and_what_layers_give():
    net = build("polynormer", dropout=0.4, heads=2, global_dropout=0.6, in_dropout=0.2)
    rates = []
    for module in net.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda one, *_: rates.append(one.rate))
    graphs = graphs_for("polynormer", EDGES["directed"])
    net.train()(random(NUM_NODES, FEATURES), graphs)
    assert rates == [0.2, 0.4, 0.4, 0.4, 0.6, 0.6]


@pytest.mark.parametrize("kind", ["channels", "sigmoid"])
def test_learned_betas_belong_to_the_network_alone(kind):
    """However it was called before, it can be trained, copied and kept."""
    task = make_task(3, self_loops=True)
    options = {"heads": 2, "warm_up_steps": 2, "beta_form": kind}
    net = make_network(task, model="polynormer", options=options)
    names = list(net.state_dict())
    start = net.attention.betas.learned[-1].detach().clone()
    for _ in range(2):
        train(net, task, LoopSettings(steps=2, lr=0.01), seed=0)
        net.train()(task.x, task.graphs)
        assert list(net.state_dict()) == names
    assert not torch.equal(net.attention.betas.learned[-1], start)
    copied = copy.deepcopy(net).eval()
    assert torch.equal(copied(task.x, task.graphs), net.eval()(task.x, task.graphs))


@pytest.mark.parametrize(("kind", "mean"), [("channels", 0.3), ("sigmoid", 0.5)])
def test_learned_betas_start_where_the_authors_start(kind, mean):
    options = read_options("polynormer", {"beta": 0.3, "beta_form": kind})
    with seeded(0, "betas"):
        betas = _Betas(10, 512, options)
    found = torch.stack([torch.as_tensor(betas(layer)) for layer in range(10)])
    assert abs(found.mean() - mean) < 0.01
    assert found.std() < 0.03
    assert (found.std() > 0.005) == (kind == "sigmoid")


# --- The local layers alone -----------------------------------------------------------


def test_local_layers_are_trained_first():
    net = build("polynormer", heads=2, warm_up_steps=20)
    graphs = graphs_for("polynormer", EDGES["undirected"])
    x, index = random(NUM_NODES, FEATURES), torch.arange(10)
    y = index % 3
    of_global = net.output.weight.clone()
    known = Known(x=x, graphs=graphs, train_index=index, train_y=y)

    def loss():
        states = net.eval().local(x, graphs)
        return F.cross_entropy(net.local_output(states)[:10], y)

    before = loss()
    net.train().prepare(known)
    assert loss() < before
    assert torch.equal(of_global, net.output.weight)


def test_the_optimizer_goes_on_after_the_local_layers():
    """One Adam for both phases moves the local layers as these trainings do."""
    task = make_task(3, self_loops=True)
    options = {"heads": 2, "warm_up_steps": 4, "warm_up_lr": 0.01, "in_dropout": 0.0}
    options |= {"global_dropout": 0.0}
    net = make_network(task, model="polynormer", dropout=0.0, options=options)
    other = copy.deepcopy(net).train()
    optimizer = torch.optim.AdamW(other.parameters(), lr=0.01, weight_decay=0.0)
    learned = task.train_index
    for step in range(5):
        optimizer.zero_grad()
        heard = other.local(task.x, task.graphs)
        logits = other.local_output(heard) if step < 4 else other(task.x, task.graphs)
        F.cross_entropy(logits[learned], task.y[learned]).backward()
        optimizer.step()
    training = Training(net, task, LoopSettings(steps=1, lr=0.01), seed=0)
    training.step()
    assert float(training.state.optimizer.state_dict()["state"][0]["step"]) == 5
    moved = dict(net.named_parameters())
    for name, expected in other.named_parameters():
        if name.startswith(("input.", "layers.", "betas.")):
            torch.testing.assert_close(moved[name], expected, atol=1e-6, rtol=0)


def test_global_layers_let_every_node_see_every_node():
    edges = torch.tensor([[0, 1], [1, 0]])
    graphs = graphs_for("polynormer", edges)
    x = random(NUM_NODES, FEATURES)
    other = x.clone()
    other[0] += 1
    far = slice(2, None)
    for layers, changes in [(2, True), (0, False)]:
        net = build("polynormer", heads=2, global_layers=layers)
        same = torch.equal(net(x, graphs)[far], net(other, graphs)[far])
        assert same != changes


def test_heads_share_the_width():
    with pytest.raises(InputError, match=r"'hidden' must be a multiple of 3, .*got 8"):
        build("polynormer", heads=3)


@pytest.mark.parametrize("num_graphs", [2, 3])
def test_evolved_graphs_are_attended_to_and_projected(num_graphs):
    net = build("polynormer", heads=2, num_graphs=num_graphs)
    more = [directed_edges(seed=seed) for seed in range(8, 7 + num_graphs)]
    graphs = graphs_for("polynormer", EDGES["undirected"], *more)
    x = random(NUM_NODES, CHANNELS)
    for layer in net.layers:
        convs = [branch.conv for branch in layer.neighbours.branches]
        edges = [graph.adjacency.edge_index() for graph in graphs]
        heard = [conv(x, e) for conv, e in zip(convs, edges, strict=True)]
        expected = layer.neighbours.project(torch.cat(heard, dim=1))
        got = layer.neighbours(x, graphs)
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


def test_baseline_has_no_projection():
    assert not any("project" in name for name in build("polynormer").state_dict())
