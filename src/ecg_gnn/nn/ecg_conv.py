"""The paper's parallel step around any PyG convolution."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ecg_gnn.nn.network import GATES, make_gate
from ecg_gnn.system.checks import InputError, check_choice, check_in_range


class ECGConv(nn.Module):
    r"""Run one convolution on each graph and project the results together.

    .. math::
        \mathbf{h}_u = \mathbf{W} \mathbf{h}_{\mathrm{INP}_u}
        + \mathbf{U} \mathbf{h}_{\mathrm{ECG}_u}

    (equation 8 of the paper). ``conv`` is a factory, not an instance: each graph has
    its own weights, and the output width is measured rather than read from an
    attribute that some convolutions define per head.

    Args:
        in_channels: Width of the input.
        out_channels: Width of each convolution's output and of the projection.
        conv: ``(in_channels, out_channels) -> module``, called ``(x, edge_index)``.
        num_evolved: How many evolved graphs follow the input graph.
        gate: ``node`` for a ``NodeGate`` before the projection; the paper has none.

    Shapes:
        - **x**: :math:`(N, F_{in})`, **edge_index**, **ecg_edge_index**: :math:`(2, E)`
        - **output**: :math:`(N, F_{out})`

    Examples:
        >>> import torch
        >>> from torch_geometric.nn import GATConv
        >>> conv = ECGConv(4, 8, lambda i, o: GATConv(i, o // 2, heads=2))
        >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> conv(torch.ones(3, 4), ring, ring.flip(0)).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        conv: Callable[[int, int], nn.Module],
        num_evolved: int = 1,
        gate: str = "none",
    ) -> None:
        check_choice("gate", gate, GATES)
        check_in_range("num_evolved", num_evolved, 0, None)
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        made = [conv(in_channels, out_channels) for _ in range(1 + num_evolved)]
        if not isinstance(made[0], nn.Module):
            raise InputError(
                "'conv' must make a module of (in_channels, out_channels) (got "
                f"{made[0]!r:.100})"
            )
        self.convs = nn.ModuleList(made)
        self.lin = nn.Linear((1 + num_evolved) * out_channels, out_channels)
        self.gate = make_gate(gate, in_channels, 1 + num_evolved)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in (*self.convs, self.lin, self.gate):
            if module is not None:
                module.reset_parameters()

    def forward(
        self, x: Tensor, edge_index: Tensor, *ecg_edge_indices: Tensor
    ) -> Tensor:
        """Convolve every graph with its own weights and project."""
        edges = (edge_index, *ecg_edge_indices)
        if len(edges) != len(self.convs):
            raise InputError(
                f"'ecg_edge_indices' must be {len(self.convs) - 1} evolved graphs, as "
                f"'num_evolved' says (got {len(ecg_edge_indices)})"
            )
        states = [conv(x, e) for conv, e in zip(self.convs, edges, strict=True)]
        if self.gate is not None:
            states = self.gate(x, states)
        out: Tensor = self.lin(torch.cat(states, dim=-1))
        return out

    def __repr__(self) -> str:
        name = type(self.convs[0]).__name__
        return f"ECGConv({self.in_channels}, {self.out_channels}, {name})"
