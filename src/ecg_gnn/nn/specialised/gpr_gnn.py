"""GPR-GNN: hops of a GCN, each with a learned weight."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import normalized_sum
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual


def hop_weights(alpha: float, num_hops: int) -> Tensor:
    """Those of personalised PageRank, ``[K + 1]``: they sum to one."""
    weights = alpha * (1 - alpha) ** torch.arange(num_hops + 1, dtype=torch.float64)
    weights[-1] = (1 - alpha) ** num_hops
    return weights.float()


class GPRGNN(SpecialisedNet):
    """Generalised PageRank GNN of Chien et al. (2021).

    ``H = W2 drop(ReLU(W1 drop(X)))`` and ``Z = sum_k gamma_k Â^k drop(H)`` for k from
    0 to K, where ``Â = D^-1/2 (A + I) D^-1/2`` and gamma is learned from
    ``gamma_k = alpha (1 - alpha)^k``, ``gamma_K = (1 - alpha)^K``. With gamma fixed
    there it is APPNP.

    Several graphs: each has its own W2 and its own gamma; what they give is added up.
    The representation is every hop's ``Â^k H`` side by side; gamma joins them.

    Args:
        spec: ``layers`` is K; ``dropout`` is of features and hidden states; options are
            ``alpha``, ``hop_dropout``.
    """

    undecayed = ("hop_weights",)
    self_loops = True
    several_graphs = True
    weighted_edges = True
    label_input = True
    usual = Usual(layers=10)
    options: ClassVar[dict[str, Option]] = {
        "alpha": Option(0.1, "share that hop weights start to stop at", 0, 1),
        "hop_dropout": Option(0.0, "dropout of H before the hops", 0, 0.99),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        options = spec.options
        hidden, out = spec.hidden, spec.out_channels
        self.num_hops = spec.layers
        self.input = nn.Linear(spec.in_channels, hidden)
        self.hidden = nn.ModuleList(
            nn.Linear(hidden, out) for _ in range(spec.num_graphs)
        )
        start = hop_weights(options["alpha"], self.num_hops)
        self.hop_weights = nn.Parameter(start.repeat(spec.num_graphs))
        self.dropout = Dropout(spec.dropout)
        self.hop_dropout = Dropout(options["hop_dropout"])

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Every graph's hops from 0 to K. ``[N, F]`` to ``[N, G (K + 1) C]``."""
        x = self.dropout(self.input(self.dropout(x)).relu())
        hops = []
        for linear, graph in zip(self.hidden, graphs, strict=True):
            state = self.hop_dropout(linear(x))
            hops.append(state)
            for _ in range(self.num_hops):
                state = normalized_sum(graph.sample(self.training), state)
                hops.append(state)
        return torch.cat(hops, dim=1)

    def classify(self, states: Tensor) -> Tensor:
        """The weighted sum of all hops."""
        hops = states.view(states.size(0), self.hop_weights.numel(), -1)
        return torch.einsum("nkc,k->nc", hops, self.hop_weights)
