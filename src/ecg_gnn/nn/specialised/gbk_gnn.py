"""GBK-GNN: a gate decides which of two kernels reads a neighbour."""

from collections.abc import Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, edge_scores, gated_sum, neighbour_mean
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import Known, NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual


class GatedKernels(nn.Module):
    """One layer; see :class:`GBKGNN` for its equations.

    Args:
        in_channels: Width of the input.
        out_channels: Width of the output.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.same = nn.Linear(in_channels, out_channels, bias=False)
        self.different = nn.Linear(in_channels, out_channels, bias=False)
        self.score = nn.Linear(in_channels, 2)

    def gate_logits(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        """Of every edge in target order, ``[E]``: above zero where ends seem alike."""
        scores = self.score(h)[..., None]  # [N, 2, 1]
        return F.leaky_relu(edge_scores(adjacency, scores), 0.2)[:, 0]

    def forward(self, h: Tensor, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        """New states ``[N, d]``, and the logits of the gates ``[E]``."""
        logits = self.gate_logits(h, adjacency)
        same, different = self.same(h), self.different(h)
        # s a + (1 - s) b = s (a - b) + b: one gated sum instead of two.
        gated = gated_sum(adjacency, logits.sigmoid(), same - different)
        gated = gated * adjacency.mean_scale[:, None].to(gated.dtype)
        plain = neighbour_mean(adjacency, different)
        return self.own(h) + gated + plain, logits


class GBKGNN(SpecialisedNet):
    """Gated bi-kernel GNN of Du et al. (2022), on SAGE's mean.

    ``h_u <- W_f h_u + mean_v (s_uv W_s h_v + (1 - s_uv) W_d h_v)`` with the gate
    ``s_uv = sigmoid(leaky_relu(a . h_u + b . h_v))``; ReLU and dropout after every
    layer, then a linear map. The authors score ``W h``, which is the same family.

    The loss gains ``gate_weight`` times, for every layer, the mean cross-entropy of
    ``s_uv`` and whether the labels of u and v are equal, over the edges between two
    training nodes.

    Args:
        spec: ``layers`` layers; ``dropout`` is of features and of every layer's output;
            options are ``gate_weight``.
    """

    usual = Usual(layers=2)
    options: ClassVar[dict[str, Option]] = {
        "gate_weight": Option(1.0, "weight of the loss of the gates", 0, 1000)
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden = spec.hidden
        widths = [spec.in_channels] + [hidden] * (spec.layers - 1)
        self.gate_weight: float = spec.options["gate_weight"]
        self.layers = nn.ModuleList(GatedKernels(width, hidden) for width in widths)
        self.output = nn.Linear(hidden, spec.out_channels)
        self.dropout = Dropout(spec.dropout)
        self._edges: Tensor | None = None
        self._alike: Tensor | None = None
        self._extra_loss: Tensor | None = None

    def prepare(self, known: Known) -> None:
        """Find the edges between training nodes, and which join equal labels."""
        adjacency = self.the_graph(known.graphs)
        label = adjacency.target.new_full((adjacency.num_nodes,), -1)
        label[known.train_index] = known.train_y.long()
        of_source, of_target = label[adjacency.source], label[adjacency.target]
        self._edges = ((of_source >= 0) & (of_target >= 0)).nonzero()[:, 0]
        self._alike = (of_source == of_target)[self._edges].float()

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, d]``."""
        adjacency = self.the_graph(graphs)
        x, gates = self.dropout(x), []
        for layer in self.layers:
            x, logits = layer(x, adjacency)
            x = self.dropout(x.relu())
            gates.append(logits)
        if self.training and self._edges is not None and self._edges.numel():
            self._extra_loss = self.gate_weight * self._gate_loss(gates, self._edges)
        return x

    def _gate_loss(self, gates: list[Tensor], edges: Tensor) -> Tensor:
        assert self._alike is not None
        losses = [
            F.binary_cross_entropy_with_logits(
                logits.index_select(0, edges).float(), self._alike
            )
            for logits in gates
        ]
        return torch.stack(losses).sum()

    def take_extra_loss(self) -> Tensor | None:
        """How far the gates are from telling equal labels."""
        loss, self._extra_loss = self._extra_loss, None
        return loss

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
