"""The residual network of the benchmark, which the paper reuses, and its modules.

A module maps normalised node states ``x [N, d]`` and one graph to ``[N, d]``. With
m(u) for the message that node u receives:

==========  =================================================================
resnet      FF(x)
gcn         FF(m), m(u) = sum_v x_v / sqrt(d_in(u) d_out(v)), self-loops
sage        FF([x, m]), m(u) = mean_v x_v
tag         FF([x, m, m(m), ...]), GCN's m without self-loops, over one to K hops
gat         z = W x; FF(m), m(u) = sum_v a_uv z_v, self-loops,
            a_uv = softmax_v leaky_relu(s(z_v) + t(z_u)), per head
gat-sep     FF([z, m]), the same attention, no self-loops
gt          W_o m, m(u) = sum_v softmax_v(<q_u, k_v> / sqrt(C)) v_v, self-loops
gt-sep      W_o [x, m], the same attention, no self-loops
==========  =================================================================

FF is ``FeedForward``; a head is every eighth channel. ``self_loops`` says what the
*input* graph gets; an evolved graph is used as step 2 made it.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn import kernels
from ecg_gnn.config import classify_settings as settings
from ecg_gnn.kernels import Adjacency, add_norm
from ecg_gnn.nn.network import (
    GraphInput,
    LayeredNetwork,
    NetworkSpec,
    Option,
    ParallelModules,
    Traits,
)


class Dropout(nn.Module):
    """Inverted dropout at a rate, in training only."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        return kernels.dropout(x, self.rate)

    def after(self, linear: nn.Linear, *parts: Tensor, gelu: bool = False) -> Tensor:
        """Dropout of a linear map of the parts, and perhaps a GELU after it."""
        rate = self.rate if self.training else 0.0
        return kernels.linear_dropout(parts, linear, rate, gelu=gelu)


NUM_HEADS = 8


class FeedForward(nn.Module):
    """Linear(m·d → d), dropout, GELU, Linear(d → d), dropout; reads m inputs."""

    def __init__(self, channels: int, dropout: float, num_inputs: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(num_inputs * channels, channels)
        self.second = nn.Linear(channels, channels)
        self.dropout = Dropout(dropout)

    def forward(self, *parts: Tensor) -> Tensor:
        hidden = self.dropout.after(self.first, *parts, gelu=True)
        return self.dropout.after(self.second, hidden)


class GraphModule(Traits, nn.Module):
    """A feed-forward block of ``parts``, which are what it reads of the graph."""

    feed_forward: FeedForward
    separate = False  # whether the node's own state is read beside the message
    own_feed_forward = True
    """False where the block adds a feed-forward residual of its own afterwards."""

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        """What is transformed, ``[N, d]`` each."""
        raise NotImplementedError

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        parts = map(adjacency.at_targets, self.parts(x, adjacency))
        out: Tensor = self.feed_forward(*parts)
        return out


class _Weightless(GraphModule):
    """Its parts are made without weights."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.feed_forward = FeedForward(channels, dropout, 1 + self.separate)


class ResNetModule(_Weightless):
    """No graph: a feed-forward block."""

    several_graphs = weighted_edges = gated = some_layers = False

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        return [x]


class GCNModule(_Weightless):
    """Normalised sum over neighbours and the node itself."""

    self_loops = True

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        return [kernels.normalized_sum(adjacency, x)]


class SAGEModule(_Weightless):
    """Mean over neighbours beside the node's own state."""

    separate = True

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        return [x, kernels.neighbour_mean(adjacency, x)]


HOPS = {"hops": Option(3, "how many times a layer propagates", 1, 10)}


class TAGModule(GraphModule):
    """``sum_k W_k Â^k x`` of Du et al. (2017), as the block's first linear map."""

    one_hop = False
    options = HOPS

    def __init__(self, channels: int, dropout: float, hops: int = 3) -> None:
        super().__init__()
        self.hops = hops
        self.feed_forward = FeedForward(channels, dropout, 1 + hops)

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        return kernels.hop_sums(adjacency, x, self.hops)


class GATModule(GraphModule):
    """Additive attention; each head's score reads the whole of z."""

    self_loops = True

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.lin = nn.Linear(channels, channels)
        self.score_source = nn.Linear(channels, NUM_HEADS)
        self.score_target = nn.Linear(channels, NUM_HEADS, bias=False)
        self.feed_forward = FeedForward(channels, dropout, 1 + self.separate)

    def parts(self, x: Tensor, adjacency: Adjacency) -> Sequence[Tensor]:
        z = kernels.joint_linear([x], self.lin)
        # Both scores in one product: it reads z once, and so does its gradient.
        weight = torch.cat([self.score_source.weight, self.score_target.weight])
        bias = F.pad(self.score_source.bias, (0, NUM_HEADS))
        scores = kernels.product([z], weight, bias).view(-1, 2, NUM_HEADS)
        values = z.view(z.size(0), -1, NUM_HEADS)
        message = kernels.additive_attention(adjacency, scores, values).reshape(z.shape)
        return [z, message] if self.separate else [message]


class GATSepModule(GATModule):
    """Additive attention beside the node's own state."""

    self_loops, separate = False, True


class GTModule(GraphModule):
    """Scaled dot-product attention, as in a transformer, over neighbours."""

    self_loops = True
    own_feed_forward = False

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        self.out = nn.Linear((1 + self.separate) * channels, channels)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, adjacency: Adjacency) -> Tensor:
        # One product for all three: it fills a device better, and so does its gradient.
        maps = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in maps])
        bias = torch.cat([part.bias for part in maps])
        packed = kernels.product([x], weight, bias).view(x.size(0), 3, -1, NUM_HEADS)
        message = kernels.dot_product_attention(adjacency, packed).reshape(x.shape)
        parts = [x, message] if self.separate else [message]
        return self.dropout.after(self.out, *map(adjacency.at_targets, parts))


class GTSepModule(GTModule):
    """Dot-product attention beside the node's own state."""

    self_loops, separate = False, True


MODULES: dict[str, type[GraphModule]] = {
    name: globals()[kind] for name, kind in settings.MODULES.items()
}


class BenchmarkNet(LayeredNetwork):
    """The architecture of Platonov et al. (2023), which the paper reuses.

    Linear, dropout, GELU; L residual blocks ``x + modules(LayerNorm(x))``; LayerNorm,
    Linear. Transformer modules are followed by a feed-forward residual of their own.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.num_layers, self.first_evolved = spec.layers, spec.first_evolved
        module, hidden, dropout = MODULES[spec.model], spec.hidden, spec.dropout
        first = nn.Linear(spec.in_channels, hidden)
        self.input: Any = nn.Sequential(first, Dropout(dropout))
        self.norms, self.blocks = nn.ModuleList(), nn.ModuleList()
        self.after = nn.ModuleList()
        self.one_hop = module.one_hop
        make = partial(module, hidden, dropout, **spec.options)
        for index in range(spec.layers):
            self.norms.append(nn.LayerNorm(hidden))
            graphs = spec.num_graphs if index >= self.first_evolved else 1
            self.blocks.append(ParallelModules(hidden, graphs, make, spec.gate))
            if not module.own_feed_forward:
                parts = nn.LayerNorm(hidden), FeedForward(hidden, dropout)
                self.after.append(nn.Sequential(*parts))
        self.output_norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, spec.out_channels)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        x = self.enter(x)
        update: Tensor | None = None  # what the stream x still has to take in
        for index in range(self.num_layers):
            given = [graph.at(index) for graph in graphs]
            x, update = self._block(index, x, update, given)
        return add_norm(x, update, self.output_norm)[1]

    def _block(
        self, index: int, x: Tensor, update: Tensor | None, graphs: Sequence[GraphInput]
    ) -> tuple[Tensor, Tensor]:
        x, normed = add_norm(x, update, self.norms[index])
        read = graphs if index >= self.first_evolved else graphs[:1]
        update = self.blocks[index](normed, read)
        x = graphs[0].adjacency.at_targets(x)
        if self.after:
            own_norm, feed_forward = self.after[index].children()
            x, normed = add_norm(x, update, own_norm)
            update = feed_forward(normed)
        assert update is not None
        return x, update

    def layer(self, index: int, states: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        x, update = self._block(index, states, None, graphs)
        return x + update

    def leave(self, states: Tensor) -> Tensor:
        return add_norm(states, None, self.output_norm)[1]

    def enter(self, x: Tensor) -> Tensor:
        linear, dropout = self.input
        states: Tensor = dropout.after(linear, x, gelu=True)
        # The stream keeps the norms' precision, whatever matrices are multiplied in.
        return states.to(self.output_norm.weight.dtype)
