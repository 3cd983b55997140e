"""Small graphs, tasks and networks that the tests of steps 1 and 3 share."""

from dataclasses import dataclass

import torch
from torch_geometric.data import Data

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, NetworkSpec, build_network
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import Task, Training, train_together


def random(*shape, seed=1, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=dtype, generator=generator)


def directed_edges(num_nodes=17, num_edges=60, seed=0):
    """Distinct random directed edges, without self-loops; the last node has none."""
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(num_nodes - 1, (2, num_edges), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    return torch.unique(edges, dim=1)


def undirected_edges(num_nodes=17, num_edges=40, seed=0):
    edges = directed_edges(num_nodes, num_edges, seed)
    return torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1)


def dense(edge_index, num_nodes):
    """A[u, v] = 1 where there is an edge v -> u, in float64."""
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    matrix[edge_index[1], edge_index[0]] = 1
    return matrix


def graph_input(edge_index, num_nodes=17, *, self_loops=False, drop_edge=0.0):
    adjacency = Adjacency.from_edge_index(
        edge_index, num_nodes, add_self_loops=self_loops
    )
    return GraphInput(adjacency, drop_edge)


@dataclass
class Masks:
    """A split, as an embedder is given it."""

    train_mask: torch.Tensor
    val_mask: torch.Tensor

    @property
    def test_mask(self):
        return ~(self.train_mask | self.val_mask)


def labelled_graph(num_classes=3, num_nodes=40, seed=0):
    """A graph whose features tell something of the class, and a split of it."""
    y = torch.arange(num_nodes) % num_classes
    x = random(num_nodes, 6, seed=seed, dtype=torch.float32)
    x[:, 0] += y
    edges = undirected_edges(num_nodes, 3 * num_nodes, seed)
    part = torch.arange(num_nodes) // num_classes % 4  # each class in every part
    data = Data(x=x, y=y, edge_index=edges)
    return data, Masks(part <= 1, part == 2)


def make_task(num_classes=3, *, evolved=False, drop_edge=0.0, self_loops=True, seed=0):
    """Classification of ``labelled_graph``, on one graph or two."""
    data, split = labelled_graph(num_classes, seed=seed)
    graphs = [graph_input(data.edge_index, 40, self_loops=self_loops)]
    if evolved:
        other = directed_edges(40, 150, seed=seed + 7)
        graphs.append(graph_input(other, 40, drop_edge=drop_edge))
    return Task(
        x=data.x,
        y=data.y,
        graphs=graphs,
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=split.test_mask.nonzero()[:, 0],
        metric="roc_auc" if num_classes == 2 else "accuracy",
    )


def make_network(
    task,
    *,
    backbone="benchmark",
    model="gcn",
    dropout=0.2,
    seed=0,
    gate="none",
    evolved_layers="all",
    options=None,
):
    with seeded(seed, "initialisation"):
        return build_network(
            NetworkSpec(
                backbone=backbone,
                model=model,
                in_channels=task.x.size(1),
                hidden=16,
                num_classes=2 if task.metric == "roc_auc" else int(task.y.max()) + 1,
                layers=2,
                num_graphs=len(task.graphs),
                dropout=dropout,
                gate=gate,
                evolved_layers=evolved_layers,
                options=options or {},
                num_nodes=task.x.size(0),
            )
        )


def train(network, task, config, *, progress=None, **options):
    """Train one network in place; options are those of ``Training``."""
    training = Training(network, task, config, **options)
    return train_together([training], progress=progress)[0]
