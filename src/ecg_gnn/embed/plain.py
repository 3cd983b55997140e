"""Embeddings that need no training: features, files, controls; and several joined."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn import reading
from ecg_gnn.config import RunConfig
from ecg_gnn.embed.protocol import EmbedRows, SplitMasks
from ecg_gnn.reading.tensor_files import read_safetensors
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file
from ecg_gnn.train import Progress

_T = TypeVar("_T")


class Untrained:
    """An embedder without settings that learns nothing, unless it says otherwise."""

    uses_labels = False
    leaks = False

    @classmethod
    def from_config(cls, config: RunConfig, progress: Progress | None) -> Self:
        return cls()

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> Self:
        return self


@dataclass(frozen=True)
class FeaturesEmbedder(Untrained):
    """The raw node features: what step 1 has to beat."""

    def embed(self, data: Data) -> Tensor:
        x: Tensor = data.x
        return x.clone()

    def keep(self, x: Tensor) -> Mapping[str, Tensor]:
        return {}

    @classmethod
    def restore(
        cls, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
    ) -> EmbedRows:
        return _features


def _features(x: Tensor, edge_index: Tensor) -> Tensor:
    return x.double()


@dataclass(frozen=True)
class PrecomputedEmbedder(Untrained):
    """Embeddings from elsewhere, text embeddings for instance."""

    tensor: Tensor  # one row per node
    name: str = "tensor"  # where they came from; with the content, which they are

    @classmethod
    def from_file(cls, path: str | Path) -> "PrecomputedEmbedder":
        """Read ``.npy``, or a ``.npz`` or ``.safetensors`` file with one array."""
        path = Path(path)
        if not path.is_file():
            raise InputError(f"'embedding' file {str(path)!r} does not exist")
        if path.suffix not in _READERS:
            raise InputError(
                f"'embedding' file must end in one of {sorted(_READERS)} "
                f"(got {path.name!r})"
            )
        # Also what arrays of text, of dates or of records would raise.
        with reading.refusing(str(path), "embeddings, one row of numbers per node"):
            tensor = torch.as_tensor(_READERS[path.suffix](path))
        return cls(tensor, sha256_of_file(path))

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> Self:
        """Nothing to learn; the number of rows must be the graph's."""
        shape = list(self.tensor.shape)
        fits = self.tensor.dim() == 2 and shape[0] == data.num_nodes and shape[1] > 0
        if not fits or self.tensor.is_complex():
            raise InputError(
                f"precomputed embeddings must be real numbers [{data.num_nodes}, D], "
                f"one row per node (got {self.tensor.dtype} {shape})"
            )
        return self

    def embed(self, data: Data) -> Tensor:
        return self.tensor.float().clone()


def _only_value(arrays: Mapping[str, _T]) -> _T:
    if len(arrays) != 1:
        raise ValueError(f"expected one array, found {sorted(arrays)}")
    return next(iter(arrays.values()))


_READERS: dict[str, Callable[[Path], object]] = {
    ".npy": reading.read_array_file,
    ".npz": lambda path: _only_value(reading.read_archive(path, None)),
    ".safetensors": lambda path: _only_value(read_safetensors(path)),
}


@dataclass(frozen=True)
class RandomControl(Untrained):
    """k random nodes: degree and parameters, no similarity."""

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


def embed_by_parts(parts: Sequence[EmbedRows], x: Tensor, edge_index: Tensor) -> Tensor:
    """What several embedders give the same nodes, side by side."""
    return concatenate([embed(x, edge_index) for embed in parts])


def concatenate(parts: Sequence[Tensor]) -> Tensor:
    """``mlp+bgrl``: rows normalised part by part, so that no part outweighs another."""
    return torch.cat([F.normalize(part, dim=-1) for part in parts], dim=-1)
