"""Controls: the same machinery with the similarity taken out, or put in by hand.

Each is an ordinary embedder. Step 2 breaks ties at random, so rows that are all equal
give random neighbours, and rows that say the class give random nodes of that class.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.plain import Untrained


@dataclass(frozen=True)
class RandomControl(Untrained):
    """k random nodes: degree and parameters, no similarity."""

    uses_labels = False
    leaks = False

    def embed(self, data: Data) -> Tensor:
        """The same row for every node: all ties."""
        return torch.ones(data.num_nodes, 1)


@dataclass(frozen=True)
class IdentityControl(RandomControl):
    """Self-loops only: the extra parameters and an ego path, no evolved graph.

    Step 2 makes no neighbours for it (``self_loops="only"``).
    """


@dataclass(frozen=True)
class OracleControl(Untrained):
    """k random nodes of the same class, all labels used: an upper bound that leaks."""

    uses_labels = True
    leaks = True

    def embed(self, data: Data) -> Tensor:
        """The class of every node as a one-hot row."""
        y: Tensor = data.y
        return F.one_hot(y - y.min()).float()
