"""Polynormer against PyG's own forward pass on the very same modules."""

import copy
import math

import pytest
import torch
from torch_geometric.nn.models import Polynormer as PyGPolynormer

from ecg_gnn.nn import Known, read_options
from ecg_gnn.nn.specialised.polynormer import _Betas
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, train
from specialised_nets import (
    CHANNELS,
    EDGES,
    FEATURES,
    NUM_NODES,
    build,
    graphs_for,
    matrix,
)
from toy_graphs import directed_edges, make_network, make_task, random


def pyg_logits(net, x, graphs, *, of_all):
    net.model._global = of_all
    edges = graphs[0].adjacency.edge_index()
    batch = torch.zeros(NUM_NODES, dtype=torch.long)
    return PyGPolynormer.forward(net.model, x, edges, batch)


@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("norms", [(True, False), (False, True)])
def test_matches_pyg(edges, heads, norms):
    post, pre = norms
    net = build("polynormer", heads=heads, beta=0.3, post_norm=post, pre_norm=pre)
    graphs = graphs_for("polynormer", EDGES[edges])
    assert matrix(graphs[0]).diagonal().all()
    x = random(NUM_NODES, FEATURES)
    got = net(x, graphs).log_softmax(1)
    expected = pyg_logits(net, x, graphs, of_all=True)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


def test_matches_pyg_without_global_layers():
    net = build("polynormer", heads=2, global_layers=0)
    graphs = graphs_for("polynormer", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    got = net(x, graphs).log_softmax(1)
    expected = pyg_logits(net, x, graphs, of_all=False)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("kind", ["channels", "sigmoid"])
def test_learned_betas_of_one_value_are_that_number(kind):
    """And each layer reads its own: another value in any of them is another answer."""
    settings = {"heads": 2, "beta": 0.3, "num_layers": 2, "global_layers": 2}
    plain = build("polynormer", **settings)
    net = build("polynormer", **settings, beta_form=kind)
    value = 0.3 if kind == "channels" else math.log(0.3 / 0.7)
    assert len(net.betas.learned) == 4
    for beta in net.betas.learned:
        assert beta.shape == (CHANNELS,)
        torch.nn.init.constant_(beta, value)
    net.load_state_dict(plain.state_dict(), strict=False)
    graphs = graphs_for("polynormer", EDGES["directed"])
    x = random(NUM_NODES, FEATURES)
    expected = plain(x, graphs)
    torch.testing.assert_close(net(x, graphs), expected)
    for beta in net.betas.learned:
        kept = beta.detach().clone()
        torch.nn.init.constant_(beta, value + 0.1)
        assert not torch.allclose(net(x, graphs), expected)
        beta.data.copy_(kept)


@pytest.mark.parametrize("kind", ["channels", "sigmoid"])
def test_learned_betas_belong_to_the_network_alone(kind):
    """However it was called before, it can be trained, copied and kept."""
    task = make_task(3, self_loops=True)
    options = {"heads": 2, "warm_up_steps": 2, "beta_form": kind}
    net = make_network(task, model="polynormer", options=options)
    names = list(net.state_dict())
    start = net.betas.learned[-1].detach().clone()
    for _ in range(2):
        train(net, task, LoopSettings(steps=2, lr=0.01), seed=0)
        net.train()(task.x, task.graphs)
        assert list(net.state_dict()) == names
    assert not torch.equal(net.betas.learned[-1], start)
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


def test_local_layers_are_trained_first():
    net = build("polynormer", heads=2, warm_up_steps=20)
    graphs = graphs_for("polynormer", EDGES["undirected"])
    x, index = random(NUM_NODES, FEATURES), torch.arange(10)
    y = index % 3
    of_global = net.model.pred_global.weight.clone()
    known = Known(x=x, graphs=graphs, train_index=index, train_y=y)

    def loss():
        states = net.eval().local(x, graphs)
        return torch.nn.functional.cross_entropy(net.model.pred_local(states)[:10], y)

    before = loss()
    net.train().prepare(known)
    assert loss() < before
    assert torch.equal(of_global, net.model.pred_global.weight)


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


def pyg_local_layer(net, layer, x, graphs):
    """The projection of PyG's own attention to every graph."""
    more = net.evolved[layer]
    convs = [net.model.local_convs[layer], *more.convs]
    edges = [graph.adjacency.edge_index() for graph in graphs]
    heard = [conv(x, e) for conv, e in zip(convs, edges, strict=True)]
    return more.project(torch.cat(heard, dim=1))


@pytest.mark.parametrize("num_graphs", [2, 3])
def test_evolved_graphs_are_attended_to_and_projected(num_graphs):
    net = build("polynormer", heads=2, num_graphs=num_graphs)
    more = [directed_edges(seed=seed) for seed in range(8, 7 + num_graphs)]
    graphs = graphs_for("polynormer", EDGES["undirected"], *more)
    for layer, width in enumerate((FEATURES, CHANNELS)):
        x = random(NUM_NODES, width)
        got = net._attend(layer, x, graphs)
        expected = pyg_local_layer(net, layer, x, graphs)
        torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-6)


def test_baseline_has_no_parameters_for_evolved_graphs():
    assert not any(
        name.startswith("evolved") for name in build("polynormer").state_dict()
    )
