"""The tuned classic GNNs that people use today."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn import kernels
from ecg_gnn.config import classify_settings as settings
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.benchmark_net import HOPS, Dropout
from ecg_gnn.nn.network import (
    GraphInput,
    LayeredNetwork,
    NetworkSpec,
    Option,
    Traits,
    make_gate,
)


class _TunedConv(Traits, nn.Module):
    """A linear map and a fixed aggregation (GCN's sum or SAGE's mean)."""

    self_loops = True

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, out_channels, bias=False)

    def aggregate(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return kernels.normalized_sum(adjacency, x)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return self.aggregate(self.lin(x), adjacency)


class _TunedSAGE(_TunedConv):
    def aggregate(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return kernels.neighbour_mean(adjacency, x)


class _TunedTAG(_TunedConv):
    """``sum_k W_k Â^k x``, k from 0 to K."""

    one_hop = False
    options = HOPS

    def __init__(self, in_channels: int, out_channels: int, hops: int = 3) -> None:
        super().__init__((1 + hops) * in_channels, out_channels)
        self.hops = hops

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        return kernels.joint_linear(kernels.hop_sums(adjacency, x, self.hops), self.lin)


class _TunedGAT(_TunedConv):
    """One attention head, as the tuned settings have it."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels)
        self.score_source = nn.Linear(out_channels, 1, bias=False)
        self.score_target = nn.Linear(out_channels, 1, bias=False)

    def aggregate(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        weight = torch.cat([self.score_source.weight, self.score_target.weight])
        scores = F.linear(x, weight)[..., None]
        return kernels.additive_attention(adjacency, scores, x[..., None])[..., 0]


TUNED_CONVS: dict[str, type[_TunedConv]] = {
    name: globals()[kind] for name, kind in settings.TUNED_CONVS.items()
}
NORMS: dict[str, type[nn.Module]] = {
    "batch": nn.BatchNorm1d,
    "layer": nn.LayerNorm,
    "none": nn.Identity,
}


TUNED_OPTIONS = {
    "input_linear": Option(False, "a linear map and dropout before the first layer")
}


class TunedNet(LayeredNetwork):
    """Tuned classic GNNs: ``h <- Dropout(ReLU(Norm(sum_g conv_g(h) + W h)))``.

    Each graph adds its own convolution, ``U_g conv_g(h)``; the linear skip ``W h``
    gives every convolution a separate ego path, which a gate leaves alone. The option
    ``input_linear`` puts ``Dropout(W_in x)`` before the first layer.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.num_layers, self.first_evolved = spec.layers, spec.first_evolved
        hidden, graphs = spec.hidden, spec.num_graphs
        mapped = spec.options.get("input_linear", False)
        self.input = nn.Linear(spec.in_channels, hidden) if mapped else None
        widths = [hidden if mapped else spec.in_channels] + [hidden] * spec.layers
        self.skips = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        kind: Any = TUNED_CONVS[spec.model]
        self.one_hop = kind.one_hop
        own = kind.options.keys() & spec.options.keys()
        conv = partial(kind, **{name: spec.options[name] for name in own})
        self.branches = nn.ModuleList(
            nn.ModuleList(conv(a, b) for a, b in pairwise(widths[first:]))
            for first in [0] + [self.first_evolved] * (graphs - 1)
        )
        gated = widths[self.first_evolved : -1]
        gates = [make_gate(spec.gate, width, graphs) for width in gated]
        self.gates = nn.ModuleList(each for each in gates if each is not None)
        self.norms = nn.ModuleList(NORMS[spec.norm](b) for b in widths[1:])
        self.dropout = Dropout(spec.dropout)
        self.output = nn.Linear(hidden, spec.out_channels)

    def enter(self, x: Tensor) -> Tensor:
        if self.input is not None:
            x = self.dropout(self.input(x))
        return x

    def layer(self, index: int, states: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        at_targets, place = graphs[0].adjacency.at_targets, index - self.first_evolved
        total = self.skips[index](at_targets(states))
        given, *evolved = self.branches
        convs = [given[index]]  # type: ignore[index]
        if place >= 0:
            convs += [branch[place] for branch in evolved]  # type: ignore[index]
        read = graphs if place >= 0 else graphs[:1]
        messages = [
            at_targets(conv(states, graph.sample(self.training)))
            for conv, graph in zip(convs, read, strict=True)
        ]
        if place >= 0 and self.gates:
            messages = self.gates[place](at_targets(states), messages)
        total = sum(messages, start=total)
        out: Tensor = self.dropout(F.relu(self.norms[index](total)))
        return out
