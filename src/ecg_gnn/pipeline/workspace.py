"""What a run brings along: embedders, their seeds and memory, kept evolved graphs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ecg_gnn import embed as embedders
from ecg_gnn.config import (
    EMBEDDERS,
    EMBEDDINGS,
    OWN_PREFIX,
    PRECOMPUTED,
    RunConfig,
    entry_of,
    is_control,
)
from ecg_gnn.config.identity import canonical, digest, variant_of
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import Embedder, EmbeddingCache, PrecomputedEmbedder, hide_labels
from ecg_gnn.embed.cache import EMBEDDING, KEPT, fit_or_load
from ecg_gnn.embed.plain import concatenate, embed_by_parts
from ecg_gnn.embed.protocol import StoredEmbedder
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.kernels import using_engine
from ecg_gnn.pipeline.cross_fit import leave_out, one_model
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import below, content_hash
from ecg_gnn.system.machine import does_not_fit, explaining
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


ALONE = Workspace()
"""Brings nothing along: no cache, and nothing is shown."""


def make_embedder(name: str, config: RunConfig, workspace: Workspace) -> Embedder:
    """Build a weak classifier or control, of one part, by its name."""
    if name in workspace.embedders:
        return workspace.embedders[name]
    if name.startswith(OWN_PREFIX):
        check_choice("embedding", name, workspace.embedders)
    if name.startswith(PRECOMPUTED):
        return PrecomputedEmbedder.from_file(name.removeprefix(PRECOMPUTED))
    progress = workspace.progress(f"{name} embedding")
    embedder: Embedder = embedder_class(name).from_config(config, progress)
    return embedder


def uses_labels(name: str, workspace: Workspace) -> bool:
    """Whether an embedding depends on the split."""
    return workspace.embedders.get(name, entry_of(name)).uses_labels


def is_cross_fitted(name: str, config: RunConfig, workspace: Workspace) -> bool:
    """Whether one model per fold embeds: what reads no labels needs none."""
    known = workspace.embedders.get(name, entry_of(name))
    return config.embed.cross_fit > 0 and known.uses_labels and not known.leaks


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
    return getattr(embedders, EMBEDDERS[name].place)


def step_seed(
    name: str, split: Split, config: RunConfig, workspace: Workspace, *step: str
) -> int:
    """The seed of one step; what reads no labels has one for all splits."""
    own_split = (split.index,) if uses_labels(name, workspace) else ()
    return derive_seed(config.seed, *step, *own_split)


def embed_for_new_nodes(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> tuple[Tensor, StoredEmbedder]:
    """``embed``, and what embeds nodes that come later; arguments as there.

    Cross-fitted, it is the first of the models: none was trained on a new node.
    """
    if is_cross_fitted(name, config, workspace):
        split, config = leave_out(split, config)[1][0], one_model(config)
    parts = entry_of(name).parts
    rows, tensors = [], dict[str, Tensor]()
    for part in parts or (name,):
        embedder = make_embedder(part, config, workspace)
        seed = step_seed(part, split, config, workspace, "embed")
        advice, data = (embedding_advice, part, dataset, config), dataset.data()
        with using_engine(config.engine), explaining(*advice):
            fitted = fit_or_load(
                embedder, data, split, seed, workspace.cache, keep=True
            )
        rows.append(fitted[EMBEDDING])
        before = f"{part}." if parts else ""
        kept = below(fitted, KEPT).items()
        tensors |= {f"{before}{key}": tensor for key, tensor in kept}
    restored = restore_embedder(name, tensors, config, dataset.num_features)
    return concatenate(rows) if parts else rows[0], restored


def embedding_advice(name: str, dataset: GraphDataset, config: RunConfig) -> str | None:
    """What to lower where memory ran out while nodes were embedded, if anything."""
    options = {"mlp": "--embed-hidden", "bgrl": "--embed-hidden", "mlp-gnn": "--hidden"}
    if name not in options:
        return None
    width = (config.model if name == "mlp-gnn" else config.embed).hidden
    what = f"the {name} embedding of {dataset.num_nodes} nodes"
    lower = f"lower {options[name]} (now {width}), or bring embeddings along"
    device = torch.device(config.device)
    return does_not_fit(what, device, f"{lower} (--embedding precomputed:FILE)")


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
    if uses_labels(name, workspace):
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
