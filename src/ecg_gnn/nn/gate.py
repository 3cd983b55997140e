"""A gate between parallel graphs, learned and read node by node."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GATES = ("none", "node")


class NodeGate(nn.Module):
    """How much a node takes of each graph: ``G softmax(V x_u + b)_g h_g(u)``.

    V and b start at zero, hence every share at one: at first the gate changes nothing,
    and a network starts as it would without one.

    Args:
        in_channels: Width of the states x that decide.
        num_graphs: How many graphs G there are.

    Shapes:
        - **x**: :math:`(N, F)`, **states**: G of :math:`(N, d)`
        - **output**: G of :math:`(N, d)`
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
