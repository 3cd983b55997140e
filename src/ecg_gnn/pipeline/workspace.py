"""What a run brings along: embedders by name, seeds, the cache of evolved graphs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import (
    EMBEDDERS,
    EMBEDDINGS,
    OWN_PREFIX,
    PRECOMPUTED,
    RunConfig,
    is_control,
)
from ecg_gnn.config.identity import canonical, digest, variant_of
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import ConcatEmbedder, Embedder, EmbeddingCache, PrecomputedEmbedder
from ecg_gnn.embed.combine import StoredParts
from ecg_gnn.embed.protocol import StoredEmbedder, below, hide_labels
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.scale import all_have
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import Progress
from ecg_gnn.train.state import content_hash

ProgressFor = Callable[[str], Progress | None]
"""Gives the progress callback for a named piece of work."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What a run brings along.

    Attributes:
        cache: Where embeddings and evolved graphs are kept.
        progress: Shows how a named piece of work goes.
        embedders: Embedders of the caller's own, by the names ``own:...``.
        loader_workers: Processes that prepare batches, where there are batches.
    """

    cache: EmbeddingCache | None = None
    progress: ProgressFor = lambda _name: None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    loader_workers: int = 0

    def __post_init__(self) -> None:
        """Refuse names of built-in embedders: the cache would mix both up."""
        for name in self.embedders:
            if not name.startswith(OWN_PREFIX):
                raise InputError(
                    "the name of an embedder of your own must begin with "
                    f"{OWN_PREFIX!r} (got {name!r})"
                )

    def once_it_moves(self, title: str) -> Progress:
        """Progress that is shown from the first step on.

        An embedder is also built to be described, or to be found in the cache: no
        display should start for that.
        """
        started: list[Progress | None] = []

        def tell(done: int, total: int, score: float) -> None:
            if not started:
                started.append(self.progress(title))
            if started[0] is not None:
                started[0](done, total, score)

        return tell


def make_embedder(name: str, config: RunConfig, workspace: Workspace) -> Embedder:
    """Build a weak classifier or control from its name and a resolved config."""
    if name in workspace.embedders:
        return workspace.embedders[name]
    if name.startswith(OWN_PREFIX):
        check_choice("embedding", name, workspace.embedders)
    if name.startswith(PRECOMPUTED):
        return PrecomputedEmbedder.from_file(name.removeprefix(PRECOMPUTED))
    parts = EMBEDDERS[name].parts
    if parts:
        return ConcatEmbedder(
            tuple(make_embedder(part, config, workspace) for part in parts)
        )
    shown = {"mlp-gnn": "MLP→GNN"}.get(name, name.upper())
    progress = workspace.once_it_moves(f"{shown} embedding")
    embedder: Embedder = embedder_class(name).from_config(config, progress)
    return embedder


def restore_embedder(
    name: str, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
) -> StoredEmbedder:
    """Build a kept embedder again from its tensors; what does not fit is refused."""
    if parts := EMBEDDERS[name].parts:
        return StoredParts(
            {
                part: restore_embedder(part, below(tensors, part), config, in_channels)
                for part in parts
            }
        )
    stored = embedder_class(name).stored
    restored: StoredEmbedder = stored.restore(tensors, config, in_channels)
    return restored


def embedder_class(name: str) -> Any:
    """The class of an embedder in the table."""
    module, attribute = EMBEDDERS[name].place.split(":")
    return getattr(import_module(f"ecg_gnn.embed.{module}"), attribute)


def step_seed(
    step: str, embedder: Embedder, split: Split, config: RunConfig, *more: str
) -> int:
    """The seed of one step; what reads no labels has one for all splits."""
    own_split = (split.index,) if embedder.uses_labels else ()
    return derive_seed(config.seed, step, *more, *own_split)


_EDGES, _WEIGHTS, _RECALL = "edges", "weights", "recall"


def kept_graph(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
    *,
    make: Callable[[], EvolvedGraph],
) -> EvolvedGraph:
    """What ``make`` gives, kept beside the embeddings it is made from."""
    if workspace.cache is None or name not in (*EMBEDDINGS, "random"):
        return make()
    cache = EmbeddingCache(workspace.cache.folder / "graphs")
    key = _key(name, dataset, split, config, workspace)
    weighted = config.evolve.weights != "uniform" and not is_control(name)
    stored = cache.load(key, _EDGES) or {}
    is_here = _EDGES in stored and (_WEIGHTS in stored or not weighted)
    if all_have(is_here):
        recall = stored.get(_RECALL)
        return EvolvedGraph(
            stored[_EDGES].long(),
            stored.get(_WEIGHTS) if weighted else None,
            None if recall is None else float(recall),
        )
    graph = make()
    tensors = {_EDGES: graph.edge_index.to(torch.int32)}
    if graph.edge_weight is not None:
        tensors[_WEIGHTS] = graph.edge_weight
    if graph.recall is not None:
        tensors[_RECALL] = torch.tensor([graph.recall], dtype=torch.float64)
    cache.store(key, tensors)
    return graph


def _key(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> str:
    """A hash of all that the graph is made from: settings, and the data that is seen.

    That includes the nodes of the split whose labels are seen: the models of
    cross-fitting differ in nothing else.
    """
    settings = canonical(config, variant_of(name), "statistics").to_dict()
    made_by = [NUMERICS, config.device, config.train.precision, config.seed]
    tensors = [dataset.x, dataset.edge_index]
    if make_embedder(name, config, workspace).uses_labels:
        shown = hide_labels(dataset.data(), split)
        tensors += [shown.y, split.train_mask, split.val_mask]
        made_by.append(split.index)
    settings.pop("dataset")
    return digest([made_by, settings, content_hash(tensors)])
