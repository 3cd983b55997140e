"""What training needs of any network."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from ecg_gnn.nn.parallel import GraphInput


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What a network may know before it is trained: no label of any other node.

    Attributes:
        x: Features. ``[N, F]``
        graphs: The input graph and any evolved ones.
        train_index: The training nodes. ``[n]``
        train_y: Their classes, in this order. ``[n]``
    """

    x: Tensor
    graphs: Sequence[GraphInput]
    train_index: Tensor
    train_y: Tensor


class Network(nn.Module):
    """What training needs of a network: representations, and logits from them."""

    undecayed: ClassVar[tuple[str, ...]] = ()
    """Parameters that weight decay leaves alone."""

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The last hidden representation. ``[N, F]`` to ``[N, d]``."""
        raise NotImplementedError

    def classify(self, states: Tensor) -> Tensor:
        """Logits of a representation. ``[N, d]`` to ``[N, C]``, or ``[N, 1]``."""
        raise NotImplementedError

    def forward(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Logits of every node."""
        return self.classify(self.represent(x, graphs))

    def prepare(self, known: Known) -> None:
        """Called once before the first step: start weights from training labels."""

    def take_extra_loss(self) -> Tensor | None:
        """What the last forward pass in training adds to the loss, once; None: nothing.

        It must not wait for the device, like everything in a step.
        """
        return None


class LayeredNetwork(Network):
    """A network of layers, in which nodes meet their neighbours once in each.

    Such a network can be computed for some nodes only: a layer reads parts of graphs,
    see ``SampledAdjacency``, and gives the states of the targets in them.

    Attributes:
        num_layers: Number of layers L.
        first_evolved: The first layer that reads more than the first graph.
    """

    num_layers: int
    first_evolved: int = 0

    def enter(self, x: Tensor) -> Tensor:
        """The first states, each node for itself. ``[n, F]`` to ``[n, d]``."""
        raise NotImplementedError

    def layer(self, index: int, states: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The states after one of the layers. ``[n, d]`` to ``[num_targets, d]``."""
        raise NotImplementedError

    def leave(self, states: Tensor) -> Tensor:
        """The representation, from the last layer's states; each node for itself."""
        raise NotImplementedError

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """All layers, one after another."""
        states = self.enter(x)
        for index in range(self.num_layers):
            states = self.layer(index, states, [graph.at(index) for graph in graphs])
        return self.leave(states)
