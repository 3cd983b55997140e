"""ACM-GNN: low-pass, high-pass and identity channels, mixed node by node."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_mean
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import SpecialisedNet, Usual

_CHANNELS = 3


class MixedChannels(nn.Module):
    """One layer of ACM; see :class:`ACMGNN` for its equations.

    Args:
        in_channels: Width of the input.
        out_channels: Width of each channel and of the mixture.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.lin = nn.Linear(in_channels, _CHANNELS * out_channels, bias=False)
        self.score = nn.Parameter(torch.empty(_CHANNELS, out_channels))
        self.mix = nn.Parameter(torch.empty(_CHANNELS, _CHANNELS))
        for weight in (self.score, self.mix):
            bound = weight.size(1) ** -0.5
            nn.init.uniform_(weight, -bound, bound)

    def channels(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """Low-pass, high-pass and identity, ``[N, 3, d]``."""
        low, high, own = self.lin(x).chunk(_CHANNELS, dim=1)
        # One pass over the edges for both filters.
        means = neighbour_mean(adjacency, torch.cat([low, high], dim=1))
        smooth, of_high = means.chunk(2, dim=1)
        return torch.stack([smooth, high - of_high, own], dim=1).relu()

    def shares(self, channels: Tensor) -> Tensor:
        """What each node takes of each channel, ``[N, 3]``; they sum to one."""
        scores = torch.einsum("ncd,cd->nc", channels, self.score).sigmoid()
        return (scores @ self.mix / _CHANNELS).softmax(1)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        """The mixture. ``[N, F]`` to ``[N, d]``."""
        channels = self.channels(x, adjacency)
        return torch.einsum("ncd,nc->nd", channels, self.shares(channels))


class ACMGNN(SpecialisedNet):
    """Adaptive channel mixing of Luan et al. (2022), on GCN's random-walk filter.

    With ``Â = D^-1 (A + I)``: ``H_L = ReLU(Â X W_L)``, ``H_H = ReLU((I - Â) X W_H)``,
    ``H_I = ReLU(X W_I)``. Each channel has a score per node,
    ``s_c = sigmoid(H_c w_c)``, and ``a = softmax([s_L, s_H, s_I] W_mix / 3)``; the
    layer gives ``a_L H_L + a_H H_H + a_I H_I``. Dropout goes before every layer, a
    linear map to the logits after the last (the authors' last layer mixes logits).

    Args:
        spec: ``layers`` layers; ``dropout`` is of every layer's input.
    """

    self_loops = True
    label_input = True
    usual = Usual(layers=2)

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden = spec.hidden
        widths = [spec.in_channels] + [hidden] * (spec.layers - 1)
        self.layers = nn.ModuleList(MixedChannels(width, hidden) for width in widths)
        self.output = nn.Linear(hidden, spec.out_channels)
        self.dropout = Dropout(spec.dropout)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map. ``[N, F]`` to ``[N, d]``."""
        adjacency = self.the_graph(graphs)
        for layer in self.layers:
            x = layer(self.dropout(x), adjacency)
        return x

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(self.dropout(states))
        return out
