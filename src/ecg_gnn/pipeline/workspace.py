"""What a run brings along: embedders, their seeds and memory, kept evolved graphs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

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
from ecg_gnn.embed import (
    BGRLEmbedder,
    ConcatEmbedder,
    Embedder,
    EmbeddingCache,
    MLPEmbedder,
    PrecomputedEmbedder,
    TrainedModelEmbedder,
)
from ecg_gnn.embed.cache import hide_labels
from ecg_gnn.embed.plain import embed_by_parts
from ecg_gnn.embed.protocol import StoredEmbedder
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import below, content_hash
from ecg_gnn.system.machine import does_not_fit
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import Progress

ProgressFor = Callable[[str], Progress | None]
"""Gives the progress callback for a named piece of work."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What a run brings along."""

    cache: EmbeddingCache | None = None  # where embeddings and evolved graphs are kept
    progress: ProgressFor = lambda _name: None  # shows how a named piece of work goes
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    """Embedders of the caller's own, by the names ``own:...``."""
    loader_workers: int = 0  # processes that prepare batches, where there are batches

    def __post_init__(self) -> None:
        """Refuse names of built-in embedders: the cache would mix both up."""
        for name in self.embedders:
            if not name.startswith(OWN_PREFIX):
                raise InputError(
                    "the name of an embedder of your own must begin with "
                    f"{OWN_PREFIX!r} (got {name!r})"
                )

    def once_it_moves(self, title: str) -> Progress:
        """Shown from the first step on: embedders are also built to be described."""
        shown = cache(lambda: self.progress(title))

        def tell(done: int, total: int, score: float) -> None:
            if (show := shown()) is not None:
                show(done, total, score)

        return tell


def make_embedder(name: str, config: RunConfig, workspace: Workspace) -> Embedder:
    """Build a weak classifier or control from its name and a resolved config."""
    if name in workspace.embedders:
        return workspace.embedders[name]
    if name.startswith(OWN_PREFIX):
        check_choice("embedding", name, workspace.embedders)
    if name.startswith(PRECOMPUTED):
        return PrecomputedEmbedder.from_file(name.removeprefix(PRECOMPUTED))
    if parts := EMBEDDERS[name].parts:
        made = [make_embedder(part, config, workspace) for part in parts]
        return ConcatEmbedder(tuple(made))
    shown = {"mlp-gnn": "MLP→GNN"}.get(name, name.upper())
    progress = workspace.once_it_moves(f"{shown} embedding")
    embedder: Embedder = embedder_class(name).from_config(config, progress)
    return embedder


def is_cross_fitted(name: str, config: RunConfig, workspace: Workspace) -> bool:
    """Whether one model per fold embeds: what reads no labels needs none."""
    if not config.embed.cross_fit:
        return False
    embedder = make_embedder(name, config, workspace)
    return embedder.uses_labels and not embedder.leaks


def restore_embedder(
    name: str, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
) -> StoredEmbedder:
    """Build a kept embedder again from its tensors; what does not fit is refused."""
    if parts := EMBEDDERS[name].parts:
        given = [(part, below(tensors, part)) for part in parts]
        restored = [restore_embedder(*one, config, in_channels) for one in given]
        embed = partial(embed_by_parts, [one.embed for one in restored])
        return StoredEmbedder(tensors, embed)
    with torch.device("meta"):  # neither memory nor first weights, which are drawn
        embed = embedder_class(name).restore(tensors, config, in_channels)
    return StoredEmbedder(tensors, embed)


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


def kept_graph(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
    *,
    make: Callable[[], EvolvedGraph],
) -> EvolvedGraph:
    """What ``make`` gives, kept beside the embeddings it is made from.

    The key is a hash of all that it is made from: settings, and the data that is seen.
    That includes the nodes of the split whose labels are seen: the models of
    cross-fitting differ in nothing else.
    """
    if workspace.cache is None or name not in (*EMBEDDINGS, "random"):
        return make()
    deciding = canonical(config, variant_of(name), "statistics")
    settings = deciding.to_dict()
    settings.pop("dataset")
    made_by = [deciding.numerics, config.device, config.train.precision, config.seed]
    seen = [dataset.x, dataset.edge_index]
    if make_embedder(name, config, workspace).uses_labels:
        shown = hide_labels(dataset.data(), split)
        seen += [shown.y, split.train_mask, split.val_mask]
        made_by.append(split.index)
    key = digest([made_by, settings, content_hash(seen)])
    graphs = EmbeddingCache(workspace.cache.folder / "graphs")
    weighted = config.evolve.weights != "uniform" and not is_control(name)
    stored = graphs.load(key, "edges") or {}
    if "edges" in stored and ("weights" in stored or not weighted):
        weights = stored["weights"] if weighted else None
        recall = float(stored["recall"]) if "recall" in stored else None
        return EvolvedGraph(stored["edges"].long(), weights, recall)
    graph = make()
    tensors = {"edges": graph.edge_index.to(torch.int32)}
    if graph.edge_weight is not None:
        tensors["weights"] = graph.edge_weight
    if graph.recall is not None:
        tensors["recall"] = torch.tensor([graph.recall], dtype=torch.float64)
    graphs.store(key, tensors)
    return graph


_Trained = MLPEmbedder | BGRLEmbedder | TrainedModelEmbedder


def embedding_advice(embedder: Embedder, data: Data) -> str | None:
    """What to lower where memory ran out while ``data`` was embedded, if anything."""
    if not isinstance(embedder, _Trained):
        return None
    if isinstance(embedder, BGRLEmbedder):
        name, option, width = "BGRL", "--embed-hidden", embedder.widths[0]
    elif isinstance(embedder, MLPEmbedder):
        name, option, width = "MLP", "--embed-hidden", embedder.hidden_channels
    else:
        name, option, width = "MLP→GNN", "--hidden", embedder.hidden_channels
    what = f"the {name} embedding of {data.num_nodes} nodes"
    lower = f"lower {option} (now {width}), or bring embeddings along"
    device = torch.device(embedder.device)
    return does_not_fit(what, device, f"{lower} (--embedding precomputed:FILE)")
