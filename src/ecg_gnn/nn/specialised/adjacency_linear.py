"""A linear map of a node's row of the adjacency matrix."""

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum
from ecg_gnn.system.checks import InputError


class AdjacencyLinear(nn.Module):
    """``A W + b``: the sum of a learned row for each neighbour.

    Args:
        num_nodes: Number of nodes N, one row of W each.
        out_channels: Width d.
        bias: Whether b is learned.
    """

    def __init__(
        self, num_nodes: int | None, out_channels: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        if num_nodes is None:
            raise InputError(
                "'num_nodes' must be given for a model that learns a row "
                "for every node (got None)"
            )
        bound = num_nodes**-0.5
        self.weight = nn.Parameter(
            torch.empty(num_nodes, out_channels).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, adjacency: Adjacency) -> Tensor:
        """One row per node, ``[N, d]``."""
        if adjacency.num_nodes != self.weight.size(0):
            raise InputError(
                f"'graphs' must have the {self.weight.size(0)} nodes that the model "
                f"was built for (got {adjacency.num_nodes})"
            )
        total = neighbour_sum(adjacency, self.weight)
        return total if self.bias is None else total + self.bias
