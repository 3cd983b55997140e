"""Embeddings: made of what an embedder may see, and kept on disk.

The key of a file is everything that determines what is in it.
"""

import copy
import dataclasses
import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn._version import NUMERICS
from ecg_gnn.embed.plain import PrecomputedEmbedder
from ecg_gnn.embed.protocol import Embedder, SplitMasks, as_trained
from ecg_gnn.kernels import current_engine
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path, content_hash

EMBEDDING, KEPT = "embedding", "kept"
HIDDEN = -1
"""The label of a node whose class an embedder must not know."""


@dataclasses.dataclass(frozen=True)
class EmbeddingCache:
    """A folder of embeddings; a file's name is the hash of what it was made from."""

    folder: Path

    def load(self, key: str, needed: str) -> dict[str, Tensor] | None:
        """The stored tensors, or None; a file without the needed one is damaged."""
        path = self.folder / f"{key}.safetensors"
        if not path.is_file():
            return None
        try:
            tensors: dict[str, Tensor] = load_file(path)
            tensors[needed]
        except (SafetensorError, OSError, KeyError) as error:
            said = f"{path} cannot be read ({error}): computing it anew"
            warnings.warn(said, stacklevel=2)
            return None
        return tensors

    def store(self, key: str, tensors: Mapping[str, Tensor]) -> None:
        """Keep tensors, whole or not at all; a run does not depend on it."""
        whole = {name: tensor.contiguous() for name, tensor in tensors.items()}
        try:
            with atomic_path(self.folder / f"{key}.safetensors") as temporary:
                save_file(whole, temporary)
        except (OSError, SafetensorError) as error:
            said = f"{self.folder} cannot be written ({error}): nothing is kept there"
            warnings.warn(said, stacklevel=2)


def embed_nodes(
    embedder: Embedder,
    data: Data,
    split: SplitMasks,
    *,
    seed: int,
    cache: EmbeddingCache | None = None,
) -> Tensor:
    """Step 1: fit on what may be seen, embed every node, freeze.

    Labels outside the training and validation nodes are hidden from the embedder, and
    all of them from one that says it uses none.
    """
    if type(embedder) is PrecomputedEmbedder:  # it sees nothing, and has its file
        return _embedding(embedder.fit(data, split, seed=seed), data)
    return fit_or_load(embedder, data, split, seed, cache)[EMBEDDING]


def fit_or_load(
    embedder: Embedder,
    data: Data,
    split: SplitMasks,
    seed: int,
    cache: EmbeddingCache | None,
    *,
    keep: bool = False,
) -> dict[str, Tensor]:
    """The embedding, and under ``KEPT`` what embeds nodes that come later, if asked."""
    shown = show_to(embedder, data, split)
    key = None if cache is None else cache_key(embedder, shown, split, seed)
    if cache is not None and key is not None:
        stored = cache.load(key, EMBEDDING)
        if stored is not None and (not keep or KEPT in stored):
            return stored
    shared = (shown.x, shown.edge_index)  # with every other embedder
    versions = [tensor._version for tensor in shared]
    fitted: Any = embedder.fit(shown, split, seed=seed)
    tensors = {EMBEDDING: _embedding(fitted, shown)}
    if [tensor._version for tensor in shared] != versions:
        raise InputError(
            f"'embedder' must leave data.x and data.edge_index as they are (got "
            f"{type(embedder).__name__}, which writes into them)"
        )
    if keep:
        tensors[KEPT] = torch.ones(1)
        for name, tensor in fitted.keep(data.x).items():
            tensors[f"{KEPT}.{name}"] = as_trained(tensor)
    if cache is not None and key is not None:
        cache.store(key, tensors)
    return tensors


def _embedding(fitted: Embedder, shown: Data) -> Tensor:
    # Detached: the paper freezes step 1, so no gradient may reach the embedder.
    embedding, name = fitted.embed(shown).detach(), type(fitted).__name__
    if embedding.dim() != 2 or embedding.size(0) != shown.num_nodes:
        raise InputError(
            f"{name}.embed must return [{shown.num_nodes}, D], one row per node "
            f"(got {list(embedding.shape)})"
        )
    bad = (~embedding.isfinite()).any(dim=1)
    if bad.any():
        first = int(bad.nonzero()[0])
        raise InputError(
            f"{name}.embed must return finite numbers "
            f"(got NaN or infinity in {int(bad.sum())} rows, first in row {first})"
        )
    return embedding


def hide_labels(data: Data, split: SplitMasks) -> Data:
    """A copy whose labels outside the training and validation nodes are hidden.

    What an embedder is not given it cannot leak, its author's mistakes included.
    """
    shown = split.train_mask | split.val_mask
    visible = copy.copy(data)  # features and edges are not worth a second copy
    visible.y = data.y.masked_fill(~shown, HIDDEN)
    return visible


def show_to(embedder: Embedder, data: Data, split: SplitMasks) -> Data:
    """What this embedder may see of ``data``: no labels if it says it uses none."""
    shown = data if embedder.leaks else hide_labels(data, split)
    if not embedder.uses_labels:
        shown = copy.copy(shown)
        shown.y = torch.full_like(data.y, HIDDEN)
    return shown


def cache_key(
    embedder: Embedder, data: Data, split: SplitMasks, seed: int
) -> str | None:
    """A hash of the embedder's fields, the data it sees, seed, engine and numerics.

    None for an embedder that is no dataclass: its settings cannot be told.
    """
    described = describe_embedder(embedder)
    if described is None:
        return None
    tensors = [data.x, data.edge_index]
    if "ecg_edge_index" in data:
        tensors.append(data.ecg_edge_index)
    if embedder.uses_labels:
        tensors += [data.y, split.train_mask, split.val_mask]
    made_by = f"{getattr(embedder, 'numerics', NUMERICS)}/{current_engine()}"
    whole = f"{made_by}/{described}/{seed}/{content_hash(tensors)}"
    return hashlib.sha256(whole.encode()).hexdigest()


def describe_embedder(value: Any) -> str | None:
    """A text that is equal exactly when two embedders' settings are; None: unknown."""
    if isinstance(value, Tensor):
        return content_hash([value])
    if isinstance(value, dict):
        value = tuple(value.items())
    if isinstance(value, tuple):
        parts = list(map(describe_embedder, value))
        return None if None in parts else str(parts)
    if not dataclasses.is_dataclass(value):
        return repr(value) if isinstance(value, (str, int, float)) else None
    # compare=False marks what does not change the embedding (progress, fitted state).
    fields = [f for f in dataclasses.fields(value) if f.compare]
    parts = [describe_embedder(getattr(value, f.name)) for f in fields]
    if None in parts:
        return None
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    return f"{kind}{[(f.name, p) for f, p in zip(fields, parts, strict=True)]}"


def check_embedder(embedder: Embedder, data: Data, split: SplitMasks) -> None:
    """Put an embedder through the contract of step 1.

    Shape and finiteness, determinism from the seed, no gradient, untouched input,
    untouched global random state, and no leak: other test labels (and, for one that
    says it uses no labels, any other labels) must give the same embedding. It is fitted
    several times, so keep it small.

    Raises:
        AssertionError: With a sentence on what is broken.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> from ecg_gnn.embed import FeaturesEmbedder
        >>> graph = load_dataset("csbm:nodes=60")
        >>> check_embedder(FeaturesEmbedder(), graph.data(), graph.split(0))  # passes
        >>> check_embedder("mlp", graph.data(), graph.split(0))
        Traceback (most recent call last):
        AssertionError: str lacks a member of Embedder
    """
    name = type(embedder).__name__
    assert isinstance(embedder, Embedder), f"{name} lacks a member of Embedder"
    shown, random_state = show_to(embedder, data, split).clone(), torch.get_rng_state()
    before = shown.clone()
    embedding = embedder.fit(shown, split, seed=0).embed(shown)
    assert torch.equal(random_state, torch.get_rng_state()), (
        f"{name} draws from torch's global generator: use the seed it is given"
    )
    assert not embedding.requires_grad, f"{name}.embed returned a tensor with gradient"
    for key, value in before.to_dict().items():
        if isinstance(value, Tensor):
            assert torch.equal(value, shown[key]), f"{name} changed data.{key}"
    other = data.clone()
    test = ~(split.train_mask | split.val_mask)
    nodes = test if embedder.uses_labels else torch.ones_like(test)
    other.y[nodes] = (data.y[nodes] + 1) % (int(data.y.max()) + 1)
    first, again, relabelled = (
        embed_nodes(embedder, graph, split, seed=0) for graph in (data, data, other)
    )
    assert torch.equal(first, again), f"{name} is not determined by its seed"
    if embedder.leaks:
        said = f"{name} says that it leaks, but reads no test label"
        assert not torch.equal(first, relabelled), said
    else:
        said = f"{name} depends on labels that it must not see"
        assert torch.equal(first, relabelled), said
