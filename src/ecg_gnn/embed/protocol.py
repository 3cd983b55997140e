"""What an embedder is, and how a fitted one is kept."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn
from torch_geometric.data import Data

from ecg_gnn.system.checks import InputError


class SplitMasks(Protocol):
    """Which nodes' labels an embedder may learn from and stop early on."""

    @property
    def train_mask(self) -> Tensor:
        """Nodes to learn from, ``[N]``."""

    @property
    def val_mask(self) -> Tensor:
        """Nodes to choose the best step on, ``[N]``."""


@runtime_checkable
class Embedder(Protocol):
    """Step 1: anything that turns a graph into one vector per node.

    An embedder of your own is a class with these four members; as a dataclass it is
    cached on disk by its fields. ``check_embedder`` puts it through the contract.

    Examples:
        >>> from dataclasses import dataclass
        >>> from torch_geometric.utils import degree
        >>> @dataclass
        ... class DegreeEmbedder:
        ...     uses_labels = False
        ...     leaks = False
        ...
        ...     def fit(self, data, split, *, seed):
        ...         return self
        ...
        ...     def embed(self, data):
        ...         return degree(data.edge_index[1], data.num_nodes)[:, None]
        >>> isinstance(DegreeEmbedder(), Embedder)
        True
    """

    @property
    def uses_labels(self) -> bool:
        """Whether ``fit`` reads labels; if not, one embedding serves every split."""

    @property
    def leaks(self) -> bool:
        """Whether test labels are read: only for an upper bound, never ranked."""

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> "Embedder":
        """Learn from ``data.x``, ``data.edge_index`` and the labels that are shown.

        ``data.y`` is -1 for every node outside the training and validation masks.
        """

    def embed(self, data: Data) -> Tensor:
        """One row per node, ``[N, D]``, finite, without gradient."""


EmbedRows = Callable[[Tensor, Tensor], Tensor]
"""Features and edges to one row per node.

Computed in float64 and independently for each row, so that a node gets the same
embedding whichever nodes come with it.
"""


class StoredEmbedder(NamedTuple):
    """What is kept of a fitted embedder, to embed nodes that come later.

    Such an embedder's ``keep`` gives everything fitted, by name, and its class's
    ``restore`` makes of that what embeds.
    """

    tensors: Mapping[str, Tensor]  # everything fitted, by name
    embed: EmbedRows


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


def as_trained(tensor: Tensor) -> Tensor:
    """A copy in the precision of training: float64 only serves predictions."""
    plain = tensor.detach().cpu().contiguous().clone()
    return plain.float() if plain.is_floating_point() else plain
