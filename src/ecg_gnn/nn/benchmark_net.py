"""The residual network of the benchmark, which the paper reuses."""

from collections.abc import Sequence

from torch import Tensor, nn

from ecg_gnn.kernels import add_norm
from ecg_gnn.nn.modules import MODULES, Dropout, FeedForward
from ecg_gnn.nn.network import LayeredNetwork, NetworkSpec
from ecg_gnn.nn.parallel import GraphInput, ParallelModules, first_evolved_layer


class BenchmarkNet(LayeredNetwork):
    """The architecture of Platonov et al. (2023), which the paper reuses.

    Linear, dropout, GELU; L residual blocks ``x + modules(LayerNorm(x))``; LayerNorm,
    Linear. Transformer modules are followed by a feed-forward residual of their own.

    ``model`` is a key of ``MODULES``.
    """

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.num_layers = spec.layers
        self.first_evolved = first_evolved_layer(spec.evolved_layers, spec.layers)
        module, hidden, dropout = MODULES[spec.model], spec.hidden, spec.dropout
        self.input = nn.Sequential(
            nn.Linear(spec.in_channels, hidden), Dropout(dropout)
        )
        self.norms = nn.ModuleList()
        self.blocks = nn.ModuleList()
        self.after = nn.ModuleList()
        for index in range(spec.layers):
            self.norms.append(nn.LayerNorm(hidden))
            graphs = spec.num_graphs if index >= self.first_evolved else 1
            self.blocks.append(
                ParallelModules(
                    hidden, graphs, lambda: module(hidden, dropout), spec.gate
                )
            )
            if not module.own_feed_forward:
                parts = nn.LayerNorm(hidden), FeedForward(hidden, dropout)
                self.after.append(nn.Sequential(*parts))
        self.output_norm = nn.LayerNorm(hidden)
        self.output = nn.Linear(hidden, spec.out_channels)

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Everything but the last linear map."""
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
