"""What the tests of the specialised models share: graphs, dense operators, networks."""

import torch

from ecg_gnn.nn import NetworkSpec, build_network
from ecg_gnn.system.seeds import seeded
from toy_graphs import dense, directed_edges, graph_input, undirected_edges

NUM_NODES, FEATURES, CHANNELS = 17, 5, 8
LOOPED = ("acm-gnn", "gpr-gnn", "polynormer")
"""Models whose formulas have self-loops on the input graph."""


def looped_edges():
    """Directed edges, and self-loops on the first three nodes."""
    nodes = torch.arange(3)
    return torch.cat([directed_edges(seed=5), torch.stack([nodes, nodes])], dim=1)


# The last node of each has no edges.
EDGES = {
    "undirected": undirected_edges(),
    "directed": directed_edges(),
    "self-loops": looped_edges(),
}


def build(model, num_classes=3, *, num_graphs=1, num_layers=2, dropout=0.0, **options):
    """A float64 network, without weights that start at one or zero; in evaluation."""
    with seeded(3, "initialisation"):
        net = build_network(
            NetworkSpec(
                backbone="benchmark",
                model=model,
                in_channels=FEATURES,
                hidden=CHANNELS,
                num_classes=num_classes,
                layers=num_layers,
                num_graphs=num_graphs,
                dropout=dropout,
                options=options,
                num_nodes=NUM_NODES,
            )
        ).double()
        for parameter in net.parameters():
            parameter.data += 0.1 * torch.randn_like(parameter)
    return net.eval()


def graphs_for(model, edges, *evolved):
    """The input graph as a model's formula has it, and evolved ones."""
    given = graph_input(edges, NUM_NODES, self_loops=model in LOOPED)
    return [given, *(graph_input(more, NUM_NODES) for more in evolved)]


def matrix(graph):
    """A[u, v] of a prepared graph."""
    return dense(graph.adjacency.edge_index(), graph.adjacency.num_nodes)


def symmetric(a):
    """D_in^-1/2 A D_out^-1/2; a node without edges counts as having one."""
    rows, columns = a.sum(1).clamp(min=1), a.sum(0).clamp(min=1)
    return a / rows.sqrt()[:, None] / columns.sqrt()


def random_walk(a):
    return a / a.sum(1).clamp(min=1)[:, None]


def linear(layer, x):
    out = x @ layer.weight.t()
    return out if layer.bias is None else out + layer.bias


def assert_close(got, expected):
    """Equal but for the rounding of float64, in which degrees are counted, too."""
    torch.testing.assert_close(got, expected, atol=1e-10, rtol=1e-10)
