"""FAGCN, GBK-GNN, GGCN: gates decide what an edge lets through, and its sign."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn import kernels
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import GraphInput, Known, NetworkSpec, Option, make_gate
from ecg_gnn.nn.specialised import base

_GAIN = 2**0.5


class SignedGate(nn.Module):
    """``sum_v drop(tanh(g . [h_u, h_v] + b)) h_v / sqrt(d_in(u) d_out(v))``."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.score = nn.Linear(2 * channels, 1)
        self.dropout = Dropout(dropout)
        nn.init.xavier_normal_(self.score.weight, gain=_GAIN)

    def gates(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        """The gate of every edge in target order, ``[E, 1]``."""
        of_target, of_source = self.score.weight.split(h.size(1), dim=1)
        scores = h @ torch.cat([of_source, of_target]).t()  # [N, 2]
        total = kernels.edge_scores(adjacency, scores[..., None]) + self.score.bias
        return torch.tanh(total)

    def forward(self, h: Tensor, adjacency: Adjacency) -> Tensor:
        gate = self.dropout(self.gates(h, adjacency))[:, 0]
        adjacency = adjacency.like(h)
        scaled = h * adjacency.out_scale[:, None].to(h.dtype)
        total = kernels.gated_sum(adjacency, gate, scaled)
        return total * adjacency.in_scale[:, None].to(h.dtype)


class FAGCN(base.SpecialisedNet):
    """Frequency-adaptive GCN of Bo et al. (2021).

    ``h0 = drop(ReLU(W1 drop(X)))``, then L times
    ``h_u <- eps h0_u + sum_v drop(tanh(g . [h_u, h_v])) h_v / sqrt(d_u d_v)``, each
    layer with a g of its own; then a linear map. No self-loops are added.

    Several graphs: each has gates of its own, and the messages are added up, where
    asked for after a ``NodeGate`` between them.

    ``layers`` is L; ``dropout`` is of features, hidden states and gates.
    """

    several_graphs = weighted_edges = gated = label_input = True
    options: ClassVar[dict[str, Option]] = {
        "eps": Option(0.3, "share of the first state in every layer", 0, 1)
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, graphs, layers = spec.hidden, range(spec.num_graphs), range(spec.layers)
        self.input = nn.Linear(spec.in_channels, hidden)
        self.layers = nn.ModuleList(
            nn.ModuleList(SignedGate(hidden, spec.dropout) for _ in graphs)
            for _ in layers
        )
        between = [make_gate(spec.gate, hidden, spec.num_graphs) for _ in layers]
        self.between = nn.ModuleList(gate for gate in between if gate is not None)
        self.output = nn.Linear(hidden, spec.out_channels)
        for linear in (self.input, self.output):
            nn.init.xavier_normal_(linear.weight, gain=_GAIN)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        first: Tensor = self.dropout(self.input(self.dropout(x)).relu())
        state = first
        for layer, gates in enumerate(self.layers):
            messages = [
                gate(state, graph.sample(self.training))
                for gate, graph in zip(gates, graphs, strict=True)  # type: ignore[call-overload]
            ]
            if self.between:
                messages = self.between[layer](state, messages)
            state = sum(messages, start=self.chosen["eps"] * first)
        return state


class GatedKernels(nn.Module):
    """One layer; see :class:`GBKGNN` for its equations."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.same = nn.Linear(in_channels, out_channels, bias=False)
        self.different = nn.Linear(in_channels, out_channels, bias=False)
        self.score = nn.Linear(in_channels, 2)

    def forward(self, h: Tensor, adjacency: Adjacency) -> tuple[Tensor, Tensor]:
        """New states ``[N, d]``, and the logits of all gates ``[E]``."""
        scores = self.score(h)[..., None]  # [N, 2, 1]
        # Above zero where both ends of an edge seem alike.
        logits = F.leaky_relu(kernels.edge_scores(adjacency, scores), 0.2)[:, 0]
        same, different = self.same(h), self.different(h)
        # s a + (1 - s) b = s (a - b) + b: one gated sum instead of two.
        gated = kernels.gated_sum(adjacency, logits.sigmoid(), same - different)
        mean_scale = adjacency.like(gated).mean_scale
        gated = gated * mean_scale[:, None].to(gated.dtype)
        plain = kernels.neighbour_mean(adjacency, different)
        return self.own(h) + gated + plain, logits


class GBKGNN(base.SpecialisedNet):
    """Gated bi-kernel GNN of Du et al. (2022), on SAGE's mean.

    ``h_u <- W_f h_u + mean_v (s_uv W_s h_v + (1 - s_uv) W_d h_v)`` with the gate
    ``s_uv = sigmoid(leaky_relu(a . h_u + b . h_v))``; ReLU and dropout after every
    layer, then a linear map. The authors score ``W h``, which is the same family.

    The loss gains ``gate_weight`` times, for every layer, the mean cross-entropy of
    ``s_uv`` and whether the labels of u and v are equal, over the edges between two
    training nodes.

    ``dropout`` is of features and of every layer's output.
    """

    options: ClassVar[dict[str, Option]] = {
        "gate_weight": Option(1.0, "weight of the loss of the gates", 0, 1000)
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden = spec.hidden
        widths = [spec.in_channels] + [hidden] * (spec.layers - 1)
        self.layers = nn.ModuleList(GatedKernels(width, hidden) for width in widths)
        self.output = nn.Linear(hidden, spec.out_channels)
        self._known: tuple[Tensor, Tensor] | None = None

    def prepare(self, known: Known) -> None:
        """Find the edges between training nodes, and which join equal labels."""
        adjacency = self.the_graph(known.graphs)
        label = adjacency.target.new_full((adjacency.num_nodes,), -1)
        label[known.train_index] = known.train_y.long()
        of_source, of_target = label[adjacency.source], label[adjacency.target]
        edges = ((of_source >= 0) & (of_target >= 0)).nonzero()[:, 0]
        self._known = edges, (of_source == of_target)[edges].float()

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        adjacency = self.the_graph(graphs)
        x, gates = self.dropout(x), []
        for layer in self.layers:
            x, logits = layer(x, adjacency)
            x = self.dropout(x.relu())
            gates.append(logits)
        if self.training and self._known is not None and self._known[0].numel():
            edges, alike = self._known
            known = [logits.index_select(0, edges).float() for logits in gates]
            losses = [F.binary_cross_entropy_with_logits(each, alike) for each in known]
            self.extra_loss = self.chosen["gate_weight"] * torch.stack(losses).sum()
        return x


class Degrees(NamedTuple):
    """A graph without self-loops, and what degrees with them say of each edge."""

    adjacency: Adjacency
    weight: Tensor  # 1 / sqrt(d_u d_v), [E]
    excess: Tensor  # sqrt(d_v / d_u) - 1: how far u's degree is below its neighbour's

    @classmethod
    def of(cls, adjacency: Adjacency) -> "Degrees":
        """In float64; on a directed graph d_u counts what arrives, d_v what leaves."""
        bare = base.without_self_loops(adjacency)
        arriving = (1.0 + bare.in_degree.double())[bare.target]
        leaving = (1.0 + bare.out_degree.double())[bare.source]
        return cls(bare, (arriving * leaving).rsqrt(), (leaving / arriving).sqrt() - 1)


class SignedMessages(nn.Module):
    """One layer; see :class:`GGCN` for its equations."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels)
        self.degree = nn.Parameter(torch.tensor([0.5, 0.0]))  # slope and intercept
        self.mix = nn.Parameter(torch.zeros(3))  # alike, unlike, itself
        self.scale = nn.Parameter(torch.full((1,), 2.0))

    def forward(self, h: Tensor, degrees: Degrees) -> Tensor:
        states = self.lin(h)
        unit = F.normalize(states)[..., None]
        cosine = kernels.edge_dot(degrees.adjacency, unit, unit)[:, 0]
        slope, intercept = self.degree.unbind()
        corrected = F.softplus(slope * degrees.excess.to(cosine.dtype) + intercept)
        alike, unlike, own = self.mix.softmax(0).unbind()
        signed = alike * cosine.relu() - unlike * (-cosine).relu()
        gate = degrees.weight.to(cosine.dtype) * corrected * signed
        message = kernels.gated_sum(degrees.adjacency, gate, states)
        out: Tensor = F.softplus(self.scale) * (message + own * states)
        return out


class GGCN(base.ColumnPerClass):
    """Generalised GCN of Yan et al. (2021), "Two sides of the same coin".

    A layer maps its input, ``s = W h + b``, and gives

        softplus(c) (m_1 sum_v t_uv [cos]+ s_v - m_2 sum_v t_uv [-cos]+ s_v + m_3 s_u),

    over neighbours v, cos being that of s_u and s_v, m the softmax of three learned
    numbers. ``t_uv = softplus(a (sqrt(d_v / d_u) - 1) + b') / sqrt(d_u d_v)`` is GCN's
    weight, degrees with self-loops, with a learned correction. Its result, z, goes into
    a running total ``h <- h + eta_l drop(ELU(z))``, which the next layer reads; the
    total starts as ``ELU(W_0 X)``, and ``eta_1 = 1``, ``eta_l = log(decay /
    (l + 1)^exponent + 1)``. The first layer reads the features; what the last one
    gives, a column per class, are the logits.

    ``layers`` is the number of layers, the first and the last included; ``dropout`` is
    of features and of every layer's result.
    """

    label_input = True
    usual = base.usually(layers=5, hidden=32)
    options: ClassVar[dict[str, Option]] = {
        "decay": Option(1.0, "how large later layers' shares in the total are", 0, 10),
        "exponent": Option(3.0, "how fast these shares fall", 0, 10),
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, inner = spec.hidden, [spec.hidden] * (spec.layers - 1)
        widths = pairwise([spec.in_channels, *inner, spec.num_classes])
        self.input = nn.Linear(spec.in_channels, hidden)
        self.layers = nn.ModuleList(SignedMessages(a, b) for a, b in widths)
        self._degrees = base.OncePerGraph(Degrees.of)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        degrees = self._degrees(self.the_graph(graphs))
        decay, exponent = self.chosen["decay"], self.chosen["exponent"]
        x = self.dropout(x)
        first, *others = self.layers
        total = F.elu(self.input(x))
        state: Tensor = first(x, degrees)
        for index, layer in enumerate(others, 1):
            share = math.log(decay / (index + 1) ** exponent + 1)
            inner = self.dropout(F.elu(state))
            total = total + (inner if index == 1 else share * inner)
            state = layer(total, degrees)
        return state
