"""How an embedder is kept: what is fitted, as tensors, and rows for nodes that come.

Computed in float64 and row by row independent of the other rows, so that a node gets
the same embedding whoever comes with it.
"""

from collections.abc import Mapping
from typing import ClassVar, Protocol, Self, runtime_checkable

import torch
from torch import Tensor, nn

from ecg_gnn.config import RunConfig
from ecg_gnn.embed.protocol import Embedder
from ecg_gnn.system.checks import InputError


class StoredEmbedder(Protocol):
    """What is kept of a fitted embedder."""

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """One row per node, float64."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything fitted, by name."""


class RestorableEmbedder(StoredEmbedder, Protocol):
    """A kept embedder that is built again from its tensors."""

    @classmethod
    def restore(
        cls, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
    ) -> Self:
        """Give a new one its weights; what does not fit is refused."""


@runtime_checkable
class KeepableEmbedder(Embedder, Protocol):
    """An embedder that can be kept, and embeds nodes that come later."""

    stored: ClassVar[type[RestorableEmbedder]]

    def keep(self, x: Tensor) -> StoredEmbedder:
        """What is kept once it is fitted, given the features it was fitted to."""


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Give a module its weights; names and shapes must be its own."""
    try:
        # assign: a module that was built without memory takes the tensors themselves.
        module.load_state_dict(dict(tensors), assign=True)
    except RuntimeError as error:
        reason = (str(error).splitlines() or [""])[-1].strip()
        raise InputError(
            f"the weights do not fit the settings ({reason:.200})"
        ) from None


def below(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a name and a point, without these."""
    start = f"{name}."
    return {
        key.removeprefix(start): tensor
        for key, tensor in tensors.items()
        if key.startswith(start)
    }


def single(tensor: Tensor) -> Tensor:
    """A tensor as it was trained: float64 only serves predictions."""
    plain = tensor.detach().cpu().contiguous().clone()
    return plain.float() if plain.is_floating_point() else plain


def no_edges() -> Tensor:
    """The edges of a graph that has none."""
    return torch.empty(2, 0, dtype=torch.long)
