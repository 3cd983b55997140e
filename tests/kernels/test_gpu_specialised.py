"""The specialised models on Triton's kernels against the plain-torch reference."""

import pytest
import torch
import torch.nn.functional as F

from ecg_gnn.kernels import engine, neighbour_sum, using_engine
from ecg_gnn.nn import SPECIALISED, NetworkSpec, build_network
from toy_graphs import directed_edges, graph_input, random, undirected_edges

NUM_NODES, FEATURES, CLASSES = 9, 5, 3


def loss_and_gradients(model, place):
    kind = SPECIALISED[model]
    edges = undirected_edges(NUM_NODES, 12)
    graphs = [graph_input(edges, NUM_NODES, self_loops=kind.self_loops)]
    if kind.several_graphs:
        other = directed_edges(NUM_NODES, 20, seed=1)
        graphs.append(graph_input(other, NUM_NODES, drop_edge=0.4))
    torch.manual_seed(0)
    network = build_network(
        NetworkSpec(
            backbone="benchmark",
            model=model,
            in_channels=FEATURES,
            hidden=16,
            num_classes=CLASSES,
            layers=2,
            num_graphs=len(graphs),
            dropout=0.3,
            num_nodes=NUM_NODES,
        )
    ).to(place, torch.float64)
    x = random(NUM_NODES, FEATURES).to(place)
    y = torch.arange(NUM_NODES, device=place) % CLASSES
    torch.manual_seed(1)
    loss = F.cross_entropy(network(x, [graph.to(place) for graph in graphs]), y)
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in network.named_parameters()}


@pytest.mark.parametrize("model", SPECIALISED)
def test_engines_give_the_same_loss_and_gradients(model, place):
    assert engine.gpu_usable(torch.ones(1, 1, device=place))
    loss, gradients = loss_and_gradients(model, place)
    with using_engine("reference"):
        expected, exact = loss_and_gradients(model, place)
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=0)
    for name, gradient in exact.items():
        if gradient is not None:
            torch.testing.assert_close(
                gradients[name], gradient, atol=1e-5, rtol=1e-5, msg=name
            )


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_plain_sum(place, rate):
    adjacency = graph_input(directed_edges(), 17).to(place).adjacency
    if rate:
        adjacency = adjacency.drop_edges(rate)
    x = random(17, 3).to(place).requires_grad_()
    weight = random(17, 3, seed=2).to(place)
    total = neighbour_sum(adjacency, x)
    source, target = adjacency.edge_index()
    expected = torch.zeros_like(total).index_add(0, target, x[source])
    torch.testing.assert_close(total, expected)
    (got,) = torch.autograd.grad((total * weight).sum(), x)
    (wanted,) = torch.autograd.grad((expected * weight).sum(), x)
    torch.testing.assert_close(got, wanted)
