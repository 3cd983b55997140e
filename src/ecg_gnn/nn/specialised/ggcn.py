"""GGCN: signed messages along edges whose weights are corrected by degrees."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, edge_dot, gated_sum
from ecg_gnn.nn.network import GraphInput, NetworkSpec, Option
from ecg_gnn.nn.specialised import base


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
        cosine = edge_dot(degrees.adjacency, unit, unit)[:, 0]
        slope, intercept = self.degree.unbind()
        corrected = F.softplus(slope * degrees.excess.to(cosine.dtype) + intercept)
        alike, unlike, own = self.mix.softmax(0).unbind()
        signed = alike * cosine.relu() - unlike * (-cosine).relu()
        gate = degrees.weight.to(cosine.dtype) * corrected * signed
        message = gated_sum(degrees.adjacency, gate, states)
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
    usual = base.Usual(layers=5, hidden=32)
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
