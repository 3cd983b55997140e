"""Controls: the same machinery with the similarity taken out, or put in by hand.

Each is an ordinary embedder. Step 2 breaks ties at random, so rows that are all equal
give random neighbours, and rows that say the class give random nodes of that class.
"""

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig
from ecg_gnn.embed.protocol import SplitMasks
from ecg_gnn.train import Progress


class _Control:
    """An embedder without settings that learns nothing."""

    @classmethod
    def from_config(cls, config: RunConfig, progress: Progress | None) -> Self:
        """No setting changes it."""
        return cls()

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> Self:
        """Nothing to learn."""
        return self


@dataclass(frozen=True)
class RandomControl(_Control):
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
class OracleControl(_Control):
    """k random nodes of the same class, all labels used: an upper bound that leaks."""

    uses_labels = True
    leaks = True

    def embed(self, data: Data) -> Tensor:
        """The class of every node as a one-hot row."""
        y: Tensor = data.y
        return F.one_hot(y - y.min()).float()
