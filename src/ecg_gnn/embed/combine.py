"""Several embeddings as one."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.protocol import Embedder, SplitMasks, StoredEmbedder


@dataclass(frozen=True)
class ConcatEmbedder:
    """L2-normalise each part's rows and concatenate them (``mlp+bgrl``).

    Args:
        parts: The embedders; a fitted copy is made of each.
    """

    parts: tuple[Embedder, ...]

    @property
    def uses_labels(self) -> bool:
        """True if any part does."""
        return any(part.uses_labels for part in self.parts)

    @property
    def leaks(self) -> bool:
        """True if any part does."""
        return any(part.leaks for part in self.parts)

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> "ConcatEmbedder":
        """Fit every part."""
        parts = tuple(part.fit(data, split, seed=seed) for part in self.parts)
        return ConcatEmbedder(parts)

    def embed(self, data: Data) -> Tensor:
        """All parts side by side, each of length one."""
        return concatenate([part.embed(data) for part in self.parts])


@dataclass(frozen=True, eq=False)
class StoredParts:
    """Kept embedders side by side, each of length one."""

    parts: Mapping[str, StoredEmbedder]

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """All of them, normalised and joined."""
        return concatenate([p.embed(x, edge_index) for p in self.parts.values()])

    def tensors(self) -> dict[str, Tensor]:
        """Those of every part, by its name."""
        return {
            f"{name}.{key}": tensor
            for name, part in self.parts.items()
            for key, tensor in part.tensors().items()
        }


def concatenate(parts: list[Tensor]) -> Tensor:
    """Rows normalised part by part, so that no part outweighs another."""
    return torch.cat([F.normalize(part, dim=-1) for part in parts], dim=-1)
