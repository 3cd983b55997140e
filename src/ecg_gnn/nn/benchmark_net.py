"""The residual network of the benchmark, which the paper reuses."""

from collections.abc import Sequence

from torch import Tensor, nn

from ecg_gnn.kernels import add_norm
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.modules import MODULES, FeedForward
from ecg_gnn.nn.network import LayeredNetwork
from ecg_gnn.nn.parallel import GraphInput, ParallelModules, first_evolved_layer


class BenchmarkNet(LayeredNetwork):
    """The architecture of Platonov et al. (2023), which the paper reuses.

    Linear, dropout, GELU; L residual blocks ``x + modules(LayerNorm(x))``; LayerNorm,
    Linear. Transformer modules are followed by a feed-forward residual of their own.

    Args:
        model: Name of the message-passing module, a key of ``MODULES``.
        in_channels: Number of features F.
        hidden_channels: Width d.
        out_channels: Number of logits; one for two classes.
        num_layers: Number of blocks L.
        num_graphs: How many graphs the blocks read in parallel.
        dropout: Dropout rate.
        gate: Between the graphs of a block; see ``NodeGate``.
        evolved_layers: ``all``, or ``last``: the others read the first graph alone.
    """

    def __init__(
        self,
        model: str,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int,
        num_graphs: int,
        dropout: float,
        gate: str = "none",
        *,
        evolved_layers: str = "all",
    ) -> None:
        super().__init__()
        self.num_layers = num_layers
        self.first_evolved = first_evolved_layer(evolved_layers, num_layers)
        module = MODULES[model]
        self.input = nn.Sequential(
            nn.Linear(in_channels, hidden_channels), Dropout(dropout)
        )
        self.norms = nn.ModuleList()
        self.blocks = nn.ModuleList()
        self.after = nn.ModuleList()
        for index in range(num_layers):
            self.norms.append(nn.LayerNorm(hidden_channels))
            self.blocks.append(
                ParallelModules(
                    hidden_channels,
                    num_graphs if index >= self.first_evolved else 1,
                    lambda: module(hidden_channels, dropout),
                    gate,
                )
            )
            if not module.own_feed_forward:
                self.after.append(
                    nn.Sequential(
                        nn.LayerNorm(hidden_channels),
                        FeedForward(hidden_channels, dropout),
                    )
                )
        self.output_norm = nn.LayerNorm(hidden_channels)
        self.output = nn.Linear(hidden_channels, out_channels)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map."""
        x = self.enter(x)
        update: Tensor | None = None  # what the stream x still has to take in
        for index in range(self.num_layers):
            given = [graph.at(index) for graph in graphs]
            x, update = self._block(index, x, update, given)
        return add_norm(x, update, self.output_norm)[1]

    def _block(
        self,
        index: int,
        x: Tensor,
        update: Tensor | None,
        graphs: Sequence[GraphInput],
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
        """One residual block, and its feed-forward block if it has one."""
        x, update = self._block(index, states, None, graphs)
        return x + update

    def leave(self, states: Tensor) -> Tensor:
        """The last norm."""
        return add_norm(states, None, self.output_norm)[1]

    def enter(self, x: Tensor) -> Tensor:
        """Linear map, dropout, GELU."""
        linear, dropout = self.input.children()
        assert isinstance(linear, nn.Linear)
        assert isinstance(dropout, Dropout)
        # The stream keeps the norms' precision, whatever matrices are multiplied in.
        return dropout.after(linear, x, gelu=True).to(self.output_norm.weight.dtype)

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
