"""Several graphs over the same nodes, read in parallel, and the gate between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, joint_linear
from ecg_gnn.system.checks import check_choice

EVOLVED_LAYERS = ("all", "last")  # which layers may read the graphs after the first one


def first_evolved_layer(evolved_layers: str, num_layers: int) -> int:
    """The first layer that reads evolved graphs; so do all after it."""
    check_choice("evolved_layers", evolved_layers, EVOLVED_LAYERS)
    return num_layers - 1 if evolved_layers == "last" else 0


@dataclass(frozen=True, eq=False)
class GraphInput:
    """One graph that a model reads, and the share of edges that each layer drops."""

    adjacency: Adjacency
    drop_edge: float = 0.0

    def sample(self, training: bool) -> Adjacency:
        """The edges for one layer of one step."""
        if training and self.drop_edge > 0:
            return self.adjacency.drop_edges(self.drop_edge)
        return self.adjacency

    def at(self, layer: int) -> "GraphInput":
        """What one layer reads: the same in all, except in parts of a graph."""
        return self

    def to(self, device: torch.device | str) -> "GraphInput":
        """The same graph on another device."""
        return GraphInput(self.adjacency.to(device), self.drop_edge)


class ParallelModules(nn.Module):
    """One module per graph, jointly projected: the paper's equations 6 to 8.

    ``h = W h_INP + U h_ECG`` is one linear map of the concatenation, and goes on to
    any number of graphs, after a ``NodeGate`` where one is asked for. One graph alone
    needs no projection: that is the baseline.
    """

    def __init__(
        self,
        channels: int,
        num_graphs: int,
        make_module: Callable[[], nn.Module],
        gate: str = "none",
    ) -> None:
        super().__init__()
        self.branches = nn.ModuleList(make_module() for _ in range(num_graphs))
        self.project = (
            nn.Linear(num_graphs * channels, channels) if num_graphs > 1 else None
        )
        self.gate = make_gate(gate, channels, num_graphs)

    def forward(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Run every branch on its graph and project. ``[N, d]`` to ``[N, d]``."""
        states: list[Tensor] = [
            branch(x, graph.sample(self.training))
            for branch, graph in zip(self.branches, graphs, strict=True)
        ]
        if self.project is None:
            return states[0]
        if self.gate is not None:
            states = self.gate(graphs[0].adjacency.at_targets(x), states)
        return joint_linear(states, self.project)


GATES = ("none", "node")


class NodeGate(nn.Module):
    """How much a node takes of each graph: ``G softmax(V x_u + b)_g h_g(u)``.

    V and b start at zero, hence every share at one: at first the gate changes nothing,
    and a network starts as it would without one.
    """

    def __init__(self, in_channels: int, num_graphs: int) -> None:
        super().__init__()
        # No nn.Linear: its random start would move the weights drawn after it.
        self.weight = nn.Parameter(torch.zeros(num_graphs, in_channels))
        self.bias = nn.Parameter(torch.zeros(num_graphs))

    def reset_parameters(self) -> None:
        """Open all gates alike."""
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def shares(self, x: Tensor) -> Tensor:
        """What every node takes of each graph, ``[N, G]``; they sum to G."""
        scores = F.linear(x, self.weight, self.bias)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.size(1) * scores.softmax(dim=1)

    def forward(self, x: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        """Every graph's states times the node's share of it."""
        shares = self.shares(x).split(1, dim=1)
        return [
            state * share.to(state.dtype)
            for state, share in zip(states, shares, strict=True)
        ]


def make_gate(gate: str, in_channels: int, num_graphs: int) -> NodeGate | None:
    """The gate of a name; None where there is none, or one graph alone."""
    return (
        NodeGate(in_channels, num_graphs) if gate == "node" and num_graphs > 1 else None
    )
