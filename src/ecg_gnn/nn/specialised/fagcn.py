"""FAGCN: gates between -1 and 1 pass low or high frequencies along every edge."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, edge_scores, gated_sum
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput, make_gate
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual

_GAIN = 2**0.5


class SignedGate(nn.Module):
    """``sum_v drop(tanh(g . [h_u, h_v] + b)) h_v / sqrt(d_in(u) d_out(v))``.

    Args:
        channels: Width of h.
        dropout: Share of gates that are closed in training.
    """

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.score = nn.Linear(2 * channels, 1)
        self.dropout = Dropout(dropout)
        nn.init.xavier_normal_(self.score.weight, gain=_GAIN)

    def gates(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        """The gate of every edge in target order, ``[E, 1]``."""
        of_target, of_source = self.score.weight.split(h.size(1), dim=1)
        scores = h @ torch.cat([of_source, of_target]).t()  # [N, 2]
        total = edge_scores(adjacency, scores[..., None]) + self.score.bias
        return torch.tanh(total)

    def forward(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        """Messages. ``[N, d]`` to ``[N, d]``."""
        gate = self.dropout(self.gates(h, adjacency))[:, 0]
        scaled = h * adjacency.out_scale[:, None].to(h.dtype)
        total = gated_sum(adjacency, gate, scaled)
        return total * adjacency.in_scale[:, None].to(h.dtype)


class FAGCN(SpecialisedNet):
    """Frequency-adaptive GCN of Bo et al. (2021).

    ``h0 = drop(ReLU(W1 drop(X)))``, then L times
    ``h_u <- eps h0_u + sum_v drop(tanh(g . [h_u, h_v])) h_v / sqrt(d_u d_v)``, each
    layer with a g of its own; then a linear map. No self-loops are added.

    Several graphs: each has gates of its own, and the messages are added up, where
    asked for after a ``NodeGate`` between them.

    Args:
        spec: ``layers`` is L; ``dropout`` is of features, hidden states and gates;
            options are ``eps``.
    """

    several_graphs = True
    weighted_edges = True
    gated = True
    label_input = True
    usual = Usual(layers=2)
    options: ClassVar[dict[str, Option]] = {
        "eps": Option(0.3, "share of the first state in every layer", 0, 1)
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden = spec.hidden
        self.eps: float = spec.options["eps"]
        self.input = nn.Linear(spec.in_channels, hidden)
        self.layers = nn.ModuleList(
            nn.ModuleList(
                SignedGate(hidden, spec.dropout) for _ in range(spec.num_graphs)
            )
            for _ in range(spec.layers)
        )
        between = [
            make_gate(spec.gate, hidden, spec.num_graphs) for _ in range(spec.layers)
        ]
        self.between = nn.ModuleList(gate for gate in between if gate is not None)
        self.output = nn.Linear(hidden, spec.out_channels)
        self.dropout = Dropout(spec.dropout)
        for linear in (self.input, self.output):
            nn.init.xavier_normal_(linear.weight, gain=_GAIN)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, d]``."""
        first: Tensor = self.dropout(self.input(self.dropout(x)).relu())
        state = first
        for layer, gates in enumerate(self.layers):
            messages = [
                gate(state, graph.sample(self.training))
                for gate, graph in zip(gates, graphs, strict=True)  # type: ignore[call-overload]
            ]
            if self.between:
                messages = self.between[layer](state, messages)
            state = self.eps * first
            for message in messages:
                state = state + message
        return state

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
