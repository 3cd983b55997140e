"""The peer: the same networks as a normal user of PyG writes them.

Message passing by PyG's own ``MessagePassing``, ``softmax`` and ``TransformerConv``,
dropout by torch; parameters have the same names as ours, so weights can be copied.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import degree, softmax

NUM_HEADS = 8


class FeedForward(nn.Module):
    """Linear, dropout, GELU, Linear, dropout."""

    def __init__(self, channels: int, dropout: float, num_inputs: int = 1) -> None:
        super().__init__()
        self.first = nn.Linear(num_inputs * channels, channels)
        self.second = nn.Linear(channels, channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[N, m·d]`` to ``[N, d]``."""
        hidden = F.gelu(self.dropout(self.first(x)))
        out: Tensor = self.dropout(self.second(hidden))
        return out


class GCN(MessagePassing):  # type: ignore[misc]
    """Sum over neighbours, normalised by both degrees, then feed-forward."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__(aggr="add")
        self.feed_forward = FeedForward(channels, dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Aggregate and transform."""
        source, target = edge_index
        scale_in = degree(target, x.size(0)).clamp_min(1).rsqrt()
        scale_out = degree(source, x.size(0)).clamp_min(1).rsqrt()
        norm = scale_in[target] * scale_out[source]
        out: Tensor = self.feed_forward(self.propagate(edge_index, x=x, norm=norm))
        return out

    def message(self, x_j: Tensor, norm: Tensor) -> Tensor:
        """A neighbour's share."""
        return norm.view(-1, 1) * x_j


class SAGE(MessagePassing):  # type: ignore[misc]
    """Mean over neighbours beside the node's own state."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__(aggr="mean")
        self.feed_forward = FeedForward(channels, dropout, num_inputs=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Aggregate, concatenate, transform."""
        message = self.propagate(edge_index, x=x)
        out: Tensor = self.feed_forward(torch.cat([x, message], dim=-1))
        return out


class GATSep(MessagePassing):  # type: ignore[misc]
    """Additive attention beside the node's own state; heads are channels mod 8."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__(aggr="add", node_dim=0)
        self.lin = nn.Linear(channels, channels)
        self.score_source = nn.Linear(channels, NUM_HEADS)
        self.score_target = nn.Linear(channels, NUM_HEADS, bias=False)
        self.feed_forward = FeedForward(channels, dropout, num_inputs=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Attend, concatenate, transform."""
        z: Tensor = self.lin(x)
        scores = (self.score_source(z), self.score_target(z))
        message = self.propagate(
            edge_index, z=z.view(z.size(0), -1, NUM_HEADS), score=scores
        )
        states = torch.cat([z, message.reshape(z.shape)], dim=-1)
        out: Tensor = self.feed_forward(states)
        return out

    def message(
        self, z_j: Tensor, score_j: Tensor, score_i: Tensor, index: Tensor, size_i: int
    ) -> Tensor:
        """A neighbour's value by its attention."""
        weight = softmax(F.leaky_relu(score_j + score_i, 0.2), index, num_nodes=size_i)
        out: Tensor = weight[:, None, :] * z_j
        return out


class GTSep(MessagePassing):  # type: ignore[misc]
    """Dot-product attention beside the node's own state; heads are channels mod 8."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__(aggr="add", node_dim=0)
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        self.out = nn.Linear(2 * channels, channels)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Attend, concatenate, project."""
        shape = (x.size(0), -1, NUM_HEADS)
        message = self.propagate(
            edge_index,
            query=self.query(x).view(shape),
            key=self.key(x).view(shape),
            value=self.value(x).view(shape),
        )
        states = torch.cat([x, message.reshape(x.shape)], dim=-1)
        out: Tensor = self.dropout(self.out(states))
        return out

    def message(
        self,
        query_i: Tensor,
        key_j: Tensor,
        value_j: Tensor,
        index: Tensor,
        size_i: int,
    ) -> Tensor:
        """A neighbour's value by its attention."""
        score = (query_i * key_j).sum(dim=1) / query_i.size(1) ** 0.5
        weight: Tensor = softmax(score, index, num_nodes=size_i)
        return weight[:, None, :] * value_j


LAYERS: dict[str, type[nn.Module]] = {
    "gcn": GCN,
    "sage": SAGE,
    "gat-sep": GATSep,
    "gt-sep": GTSep,
}


class PyGNet(nn.Module):
    """The benchmark's residual network over one or more ``edge_index``."""

    def __init__(
        self,
        model: str,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        num_graphs: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.input = nn.Sequential(
            nn.Linear(in_channels, hidden_channels), nn.Dropout(dropout), nn.GELU()
        )
        self.norms, self.blocks = nn.ModuleList(), nn.ModuleList()
        self.after = nn.ModuleList()
        for _ in range(num_layers):
            self.norms.append(nn.LayerNorm(hidden_channels))
            block = nn.Module()
            block.branches = nn.ModuleList(
                LAYERS[model](hidden_channels, dropout) for _ in range(num_graphs)
            )
            if num_graphs > 1:
                block.project = nn.Linear(num_graphs * hidden_channels, hidden_channels)
            self.blocks.append(block)
            if model.startswith("gt"):
                norm = nn.LayerNorm(hidden_channels)
                feed_forward = FeedForward(hidden_channels, dropout)
                self.after.append(nn.Sequential(norm, feed_forward))
        self.output_norm = nn.LayerNorm(hidden_channels)
        self.output = nn.Linear(hidden_channels, out_channels)

    def forward(self, x: Tensor, edge_indices: Sequence[Tensor]) -> Tensor:
        """Logits of every node."""
        x = self.input(x)
        for layer, (norm, block) in enumerate(
            zip(self.norms, self.blocks, strict=True)
        ):
            x = x + self._block(block, norm(x), edge_indices)
            if self.after:
                x = x + self.after[layer](x)
        out: Tensor = self.output(self.output_norm(x))
        return out

    @staticmethod
    def _block(block: nn.Module, x: Tensor, edge_indices: Sequence[Tensor]) -> Tensor:
        branches: nn.ModuleList = block.branches  # type: ignore[assignment]
        states = [
            branch(x, edges)
            for branch, edges in zip(branches, edge_indices, strict=True)
        ]
        if len(states) == 1:
            return states[0]  # type: ignore[no-any-return]
        return block.project(torch.cat(states, dim=-1))  # type: ignore[operator, no-any-return]
