"""What training needs of any network."""

from collections.abc import Sequence

from torch import Tensor, nn

from ecg_gnn.nn.parallel import GraphInput


class Network(nn.Module):
    """What training needs of a network: representations, and logits from them."""

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The last hidden representation. ``[N, F]`` to ``[N, d]``."""
        raise NotImplementedError

    def classify(self, states: Tensor) -> Tensor:
        """Logits of a representation. ``[N, d]`` to ``[N, C]``, or ``[N, 1]``."""
        raise NotImplementedError

    def forward(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """Logits of every node."""
        return self.classify(self.represent(x, graphs))
