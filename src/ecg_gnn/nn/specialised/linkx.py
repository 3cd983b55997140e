"""LINKX: features and rows of the adjacency matrix through MLPs of their own."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import AdjacencyLinear, SpecialisedNet, Usual


class Further(nn.Module):
    """The layers of an MLP after its first: BatchNorm, ReLU, dropout, Linear each.

    Args:
        channels: Width.
        num_layers: How many there are.
        dropout: Dropout rate.
    """

    def __init__(self, channels: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in range(num_layers))
        self.maps = nn.ModuleList(
            nn.Linear(channels, channels) for _ in range(num_layers)
        )
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """``[N, d]`` to ``[N, d]``."""
        for norm, linear in zip(self.norms, self.maps, strict=True):
            x = linear(self.dropout(norm(x).relu()))
        return x


class LINKX(SpecialisedNet):
    """LINKX of Lim et al. (2021).

    ``h_A = MLP_A(A)``, ``h_X = MLP_X(X)``, and a last MLP of
    ``ReLU(W [h_A, h_X] + h_A + h_X)``. The first layer of MLP_A learns a row for every
    node, so the model knows the nodes it was trained on and no others.

    Args:
        spec: ``layers`` is the number of linear maps of the last MLP; ``dropout`` is
            between the layers of the MLPs; options are ``edge_layers`` and
            ``node_layers`` of MLP_A and MLP_X.
    """

    usual = Usual(layers=2)
    options: ClassVar[dict[str, Option]] = {
        "edge_layers": Option(1, "linear maps of the MLP on the adjacency", 1, 10),
        "node_layers": Option(1, "linear maps of the MLP on the features", 1, 10),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options = spec.options
        hidden = spec.hidden
        self.edges = AdjacencyLinear(spec.num_nodes, hidden)
        self.more_edges = Further(hidden, options["edge_layers"] - 1, spec.dropout)
        self.nodes = nn.Linear(spec.in_channels, hidden)
        self.more_nodes = Further(hidden, options["node_layers"] - 1, spec.dropout)
        self.join = nn.Linear(2 * hidden, hidden)
        self.last = nn.ModuleList(
            nn.Linear(hidden, hidden) for _ in range(spec.layers - 1)
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(hidden) for _ in range(spec.layers - 1)
        )
        self.output = nn.Linear(hidden, spec.out_channels)
        self.dropout = Dropout(spec.dropout)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, d]``."""
        edges = self.more_edges(self.edges(self.the_graph(graphs)))
        nodes = self.more_nodes(self.nodes(x))
        both = torch.cat([edges, nodes], dim=1)
        state: Tensor = (self.join(both) + edges + nodes).relu()
        for linear, norm in zip(self.last, self.norms, strict=True):
            state = self.dropout(norm(linear(state)).relu())
        return state

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
