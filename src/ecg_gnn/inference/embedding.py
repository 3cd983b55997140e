"""Step 1 for later: a fitted weak classifier that can embed nodes it has never seen.

Computed in float64 and row by row independent of the other rows, so that a node gets
the same embedding whoever comes with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import Split
from ecg_gnn.embed import BGRLEmbedder, Embedder, FeaturesEmbedder, MLPEmbedder
from ecg_gnn.embed.bgrl import Encoder
from ecg_gnn.embed.combine import concatenate
from ecg_gnn.embed.protocol import show_to
from ecg_gnn.embedders import Workspace, make_embedder
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import GraphInput, Network, NetworkSpec, build_network
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.seeds import derive_seed

EMBEDDINGS = ("mlp", "bgrl", "mlp+bgrl", "features", "none")
"""Those that can embed new nodes; ``none`` leaves the evolved graph out."""


class StoredEmbedder(Protocol):
    """What is kept of a fitted embedder."""

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """One row per node, float64."""

    def tensors(self) -> dict[str, Tensor]:
        """Everything fitted, by name."""


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """The features themselves."""

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Nothing to compute."""
        return x.double()

    def tensors(self) -> dict[str, Tensor]:
        """Nothing to keep."""
        return {}


@dataclass(frozen=True, eq=False)
class StoredMLP:
    """The last hidden representation of a network without a graph."""

    network: Network

    @torch.no_grad()
    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Each row from its own features."""
        none = torch.empty(2, 0, dtype=torch.long)
        graph = GraphInput(Adjacency.from_edge_index(none, x.size(0)))
        return self.network.represent(x.double(), [graph])

    def tensors(self) -> dict[str, Tensor]:
        """The weights."""
        return dict(self.network.state_dict())


@dataclass(frozen=True, eq=False)
class StoredBGRL:
    """A self-supervised encoder, and the range that its features were scaled by."""

    encoder: Encoder
    low: Tensor
    high: Tensor

    @torch.no_grad()
    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Each row from its features and its neighbours'."""
        span = (self.high - self.low).clamp_min(torch.finfo(torch.float32).tiny)
        adjacency = Adjacency.from_edge_index(
            edge_index, x.size(0), add_self_loops=True
        )
        states: Tensor = self.encoder(
            (x.double() - self.low.double()) / span.double(), adjacency
        )
        return states

    def tensors(self) -> dict[str, Tensor]:
        """The weights and the range."""
        kept = {f"encoder.{k}": v for k, v in self.encoder.state_dict().items()}
        return {**kept, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class StoredPair:
    """Two embedders side by side, each of length one."""

    parts: Mapping[str, StoredEmbedder]

    def embed(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Both, normalised and joined."""
        return concatenate([p.embed(x, edge_index) for p in self.parts.values()])

    def tensors(self) -> dict[str, Tensor]:
        """Those of both."""
        return {
            f"{name}.{key}": tensor
            for name, part in self.parts.items()
            for key, tensor in part.tensors().items()
        }


FittedEmbedder = tuple[StoredEmbedder, Tensor]
"""With the embedding of every node."""


def fit_embedder(
    name: str,
    data: Data,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
    label_free: dict[str, FittedEmbedder] | None = None,
) -> FittedEmbedder:
    """Fit as a run would, and give the embedding of every node, too.

    Args:
        name: Which embedding.
        data: The graph.
        split: Whose labels may be seen.
        config: Resolved settings.
        workspace: Progress.
        label_free: What was fitted without labels before, for any split; filled.
    """
    label_free = {} if label_free is None else label_free
    if name in label_free:
        return label_free[name]
    if "+" in name:
        found = {
            part: fit_embedder(part, data, split, config, workspace, label_free)
            for part in name.split("+")
        }
        stored = StoredPair({part: kept for part, (kept, _) in found.items()})
        return stored, concatenate([z for _, z in found.values()])
    embedder = make_embedder(name, config, workspace)
    own_split = (split.index,) if embedder.uses_labels else ()
    seed = derive_seed(config.seed, "embed", *own_split)
    shown = show_to(embedder, data, split)
    with using_engine(config.engine):
        fitted = embedder.fit(shown, split, seed=seed)
        z = fitted.embed(shown).detach()
    made = _store(fitted, data.x), z
    if not embedder.uses_labels:
        label_free[name] = made
    return made


def _store(fitted: Embedder, x: Tensor) -> StoredEmbedder:
    if isinstance(fitted, FeaturesEmbedder):
        return StoredFeatures()
    if isinstance(fitted, MLPEmbedder):
        assert fitted.network is not None
        return StoredMLP(fitted.network.cpu().double().eval())
    assert isinstance(fitted, BGRLEmbedder)
    assert fitted.encoder is not None
    encoder = fitted.encoder.cpu().double().eval()
    return StoredBGRL(encoder, x.amin(dim=0), x.amax(dim=0))


def restore_embedder(
    name: str, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
) -> StoredEmbedder:
    """Build an embedder again from its tensors; what does not fit is refused."""
    check_choice("embedding", name, EMBEDDINGS[:-1])
    if "+" in name:
        return StoredPair(
            {
                part: restore_embedder(part, below(tensors, part), config, in_channels)
                for part in name.split("+")
            }
        )
    if name == "features":
        return StoredFeatures()
    hidden = known(config.embed.hidden)
    if name == "bgrl":
        encoder = Encoder(in_channels, (hidden, hidden // 2))
        load_weights(encoder, below(tensors, "encoder"))
        low, high = tensors["low"], tensors["high"]
        if low.shape != (in_channels,) or high.shape != (in_channels,):
            raise InputError("the embedder's range does not fit the features")
        return StoredBGRL(encoder.double().eval(), low, high)
    outputs = tensors["output.weight"].size(0)
    network = build_network(
        NetworkSpec(
            backbone="benchmark",
            model="resnet",
            in_channels=in_channels,
            hidden=hidden,
            num_classes=max(2, outputs),
            layers=known(config.embed.layers),
            num_graphs=1,
            dropout=config.model.dropout,
        )
    )
    load_weights(network, tensors)
    return StoredMLP(network.double().eval())


def load_weights(module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
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
