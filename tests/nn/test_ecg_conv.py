"""The parallel step around PyG's own convolutions."""

import doctest
from importlib import import_module

import pytest
import torch
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from ecg_gnn.nn import ECGConv
from ecg_gnn.system.checks import InputError
from toy_graphs import directed_edges, random

NUM_NODES, FEATURES, CHANNELS = 17, 5, 8

CONVS = {
    "gcn": GCNConv,
    "sage": SAGEConv,
    "gat": lambda i, o: GATConv(i, o // 4, heads=4),
}


def make(name, num_evolved=1):
    torch.manual_seed(5)
    return ECGConv(FEATURES, CHANNELS, CONVS[name], num_evolved).double()


@pytest.fixture(params=CONVS)
def name(request):
    return request.param


@pytest.mark.parametrize("num_evolved", [1, 2])
def test_matches_formula_with_copied_weights(name, num_evolved):
    layer, x = make(name, num_evolved), random(NUM_NODES, FEATURES)
    edges = [directed_edges(seed=seed) for seed in range(1 + num_evolved)]
    expected = layer.lin.bias
    for index, graph in enumerate(edges):
        conv = CONVS[name](FEATURES, CHANNELS).double()
        conv.load_state_dict(layer.convs[index].state_dict())
        columns = slice(index * CHANNELS, (index + 1) * CHANNELS)
        expected = expected + conv(x, graph) @ layer.lin.weight[:, columns].t()
    torch.testing.assert_close(layer(x, *edges), expected, atol=1e-12, rtol=0)


def test_order_of_edges_does_not_matter(name):
    layer, x = make(name), random(NUM_NODES, FEATURES)
    given, evolved = directed_edges(), directed_edges(seed=1)
    out = layer(x, given, evolved)
    assert out.shape == (NUM_NODES, CHANNELS)
    generator = torch.Generator().manual_seed(0)
    shuffled = [
        e[:, torch.randperm(e.size(1), generator=generator)] for e in (given, evolved)
    ]
    torch.testing.assert_close(layer(x, *shuffled), out)


def test_swapped_graphs_change_the_output(name):
    layer, x = make(name), random(NUM_NODES, FEATURES)
    given, evolved = directed_edges(), directed_edges(seed=1)
    assert not torch.allclose(layer(x, given, evolved), layer(x, evolved, given))


def test_every_parameter_has_gradient(name):
    layer = make(name, num_evolved=2)
    edges = [directed_edges(seed=seed) for seed in range(3)]
    layer(random(NUM_NODES, FEATURES), *edges).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for p in layer.parameters())


@pytest.mark.parametrize("more", [0, 2])
def test_refuses_another_number_of_graphs(more):
    layer, x = make("gcn"), random(NUM_NODES, FEATURES)
    said = rf"'ecg_edge_indices' must be 1 evolved graphs, .* \(got {more}\)"
    with pytest.raises(InputError, match=said):
        layer(x, *[directed_edges()] * (1 + more))


def test_refuses_what_cannot_be_built():
    with pytest.raises(
        InputError, match=r"'num_evolved' must be in \[0, inf\) \(got -1"
    ):
        make("gcn", num_evolved=-1)
    for nothing in (None, "GCNConv"):
        with pytest.raises(InputError, match=f"'conv' must make a module .*{nothing}"):
            ECGConv(FEATURES, CHANNELS, lambda *_, given=nothing: given)


def test_reset_draws_all_weights_anew(name):
    layer = make(name)
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    torch.manual_seed(11)
    layer.reset_parameters()
    after = layer.state_dict()
    drawn = [key for key in before if before[key].any()]  # biases of PyG start at zero
    assert len(drawn) > 3
    assert not any(torch.equal(before[key], after[key]) for key in drawn)
    torch.manual_seed(11)
    layer.reset_parameters()
    assert all(torch.equal(layer.state_dict()[key], after[key]) for key in after)


def test_repr(name):
    kind = {"gcn": "GCNConv", "sage": "SAGEConv", "gat": "GATConv"}[name]
    assert repr(make(name)) == f"ECGConv(5, 8, {kind})"


def test_any_module_will_do():
    class Mean(nn.Module):
        def __init__(self, in_channels, out_channels):
            super().__init__()
            self.lin = nn.Linear(in_channels, out_channels)

        def forward(self, x, edge_index):
            return self.lin(x).mean(0).expand(x.size(0), -1)

    layer = ECGConv(FEATURES, CHANNELS, Mean)
    x = random(NUM_NODES, FEATURES, dtype=torch.float32)
    assert layer(x, directed_edges(), directed_edges()).shape == (NUM_NODES, CHANNELS)


def test_example_in_the_documentation_runs():
    outcome = doctest.testmod(import_module("ecg_gnn.nn.ecg_conv"))
    assert outcome.attempted > 0
    assert outcome.failed == 0
