"""LINKX against PyG's with the same weights."""

import pytest
import torch
from torch_geometric.nn import models

from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.system.checks import InputError
from specialised_nets import (
    CHANNELS,
    EDGES,
    FEATURES,
    NUM_NODES,
    assert_close,
    build,
    graphs_for,
    linear,
    matrix,
)
from toy_graphs import graph_input, random


@pytest.mark.parametrize("edges", EDGES)
def test_matches_pyg(edges):
    net = build("linkx", num_layers=1)
    sizes = (NUM_NODES, FEATURES, CHANNELS, 3)
    twin = models.LINKX(*sizes, num_layers=1).double().eval()
    twin.edge_lin.weight.data = net.edges.weight.data
    twin.edge_lin.bias.data = net.edges.bias.data
    twin.node_mlp.lins[0].load_state_dict(net.nodes.state_dict())
    of_edges, of_nodes = net.join.weight.data.split(CHANNELS, dim=1)
    twin.cat_lin1.weight.data, twin.cat_lin2.weight.data = of_edges, of_nodes
    twin.cat_lin1.bias.data = net.join.bias.data
    twin.cat_lin2.bias.data.zero_()
    twin.final_mlp.lins[0].load_state_dict(net.output.state_dict())
    x = random(NUM_NODES, FEATURES)
    got = net(x, graphs_for("linkx", EDGES[edges]))
    assert_close(got, twin(x, EDGES[edges]))


@pytest.mark.parametrize("edges", EDGES)
def test_matches_the_dense_adjacency(edges):
    net = build("linkx", num_layers=2, edge_layers=2, node_layers=2)
    for norm in (net.more_edges.norms[0], net.more_nodes.norms[0], net.norms[0]):
        norm.running_mean += random(CHANNELS)
        norm.running_var += random(CHANNELS, seed=2).square()
    graphs = graphs_for("linkx", EDGES[edges])
    x = random(NUM_NODES, FEATURES)

    def further(layers, state):
        return linear(layers.maps[0], normed(layers.norms[0], state.relu()))

    of_edges = matrix(graphs[0]) @ net.edges.weight + net.edges.bias
    of_edges = further(net.more_edges, of_edges)
    of_nodes = further(net.more_nodes, linear(net.nodes, x))
    both = torch.cat([of_edges, of_nodes], dim=1)
    state = (linear(net.join, both) + of_edges + of_nodes).relu()
    state = normed(net.norms[0], linear(net.last[0], state).relu())
    assert_close(net.represent(x, graphs), state)


def normed(norm, state):
    """BatchNorm with statistics of its own, which were not left at zero and one."""
    spread = (norm.running_var + norm.eps).sqrt()
    return (state - norm.running_mean) / spread * norm.weight + norm.bias


def test_only_the_last_mlp_drops():
    """In training its two branches give what they give without dropout."""
    options = {"edge_layers": 2, "node_layers": 2}
    net = build("linkx", num_layers=2, dropout=0.5, **options).train()
    dropped = []
    for module in net.modules():
        if isinstance(module, Dropout):
            module.register_forward_hook(lambda *seen: dropped.append(seen[2]))
    net(random(NUM_NODES, FEATURES), graphs_for("linkx", EDGES["directed"]))
    (state,) = dropped
    assert state.shape == (NUM_NODES, CHANNELS)
    assert (state == 0).any()


def test_knows_the_nodes_of_one_graph():
    other = [graph_input(EDGES["directed"], NUM_NODES + 1)]
    with pytest.raises(InputError, match=r"'x' must have shape \[18, d\], a row"):
        build("linkx")(random(NUM_NODES + 1, FEATURES), other)
