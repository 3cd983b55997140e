"""Before anything is trained: fill in settings, choose variants, refuse what is wrong.

A setting comes, in this order, from the caller, from what a whole network is usually
used with, from the paper's table, from the preset's column of the declarations, and
from that of ``quick``.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from ecg_gnn import nn
from ecg_gnn.config import (
    OWN_PREFIX,
    PRECOMPUTED,
    EmbedConfig,
    ModelConfig,
    RunConfig,
    declared,
    known,
)
from ecg_gnn.config.classify_settings import BY_HOMOPHILY, check_model
from ecg_gnn.config.identity import BASELINE, Variant, controls_of, variant_of
from ecg_gnn.config.run_config import flatten, replaced
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import Embedder, PrecomputedEmbedder, describe_embedder, embed_nodes
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.nn.models import refuse_unless
from ecg_gnn.paper_settings import best_settings
from ecg_gnn.pipeline.classification import network_of
from ecg_gnn.pipeline.cross_fit import check_folds
from ecg_gnn.pipeline.workspace import Workspace, make_embedder
from ecg_gnn.system.checks import InputError, check_device
from ecg_gnn.train import computing_in, default_precision

# Below this, neighbours say little about a node's class, or point to another one: SAGE
# keeps a node's own state apart from theirs, GCN mixes both.
_HETEROPHILOUS = 0.3
NUM_SPLITS = {"quick": 5, "paper": 10, "auto": 5}
"""How many splits a preset runs, where there are as many."""


def resolve(config: RunConfig, dataset: GraphDataset) -> RunConfig:
    """Fill in the preset's values, the device and splits; refuse what does not fit."""
    splits = _pick_splits(config, dataset)
    chosen = choose_model(config.model.name, dataset, dataset.split(splits[0]))
    config = replaced(config, {"model.name": chosen})
    model = config.model
    check_model(model.name, model.backbone)
    device = pick_device(config.device)
    options = dict(nn.read_options(model.name, model.options, model.backbone))
    settings = flatten(config) | {
        "device": str(device),
        "splits": splits,
        "model.options": options,
    }
    if config.train.precision == "auto":
        settings["train.precision"] = default_precision(device)
    columns = ChainMap(*_columns(config, dataset))
    missing = {name: one for name, one in declared().items() if settings[name] is None}
    # Settings that take another's value come last.
    for name, one in sorted(missing.items(), key=lambda item: item[1].like is not None):
        value = columns.get(name, settings.get(one.like or ""))
        settings[name] = value(dataset.num_nodes) if callable(value) else value
    resolved = replaced(config, settings)
    _check_fit(resolved, dataset)
    # Build the network once without memory: what it refuses, it refuses now.
    num_graphs = 2 if evolves(resolved.model) else 1
    with torch.device("meta"), computing_in(resolved.train.precision, device):
        network_of(replaced(resolved, {"model.layers": 1}), dataset, num_graphs)
    return resolved


def choose_model(name: str | None, dataset: GraphDataset, split: Split) -> str:
    """The model of this name; if none is named, the one that homophily suggests.

    That is ``gcn`` where neighbours agree, else ``sage``; test classes are not looked
    at.
    """
    if name not in (None, BY_HOMOPHILY):
        return name
    shown = split.train_mask | split.val_mask
    edges, y = dataset.labelled_part(dataset.edge_index, shown)
    measured = graph_statistics(edges, y, directed=dataset.directed)
    agree = measured["adjusted_homophily"] >= _HETEROPHILOUS  # NaN does not
    return "gcn" if agree else "sage"


def _columns(config: RunConfig, dataset: GraphDataset) -> Iterator[dict[str, Any]]:
    """Where values come from, by dotted name, the first that has one wins."""
    model = config.model.name
    if model in nn.SPECIALISED:
        yield nn.SPECIALISED[model].usual
    if config.preset == "paper":
        weak = best_settings(dataset.name, "resnet")
        yield {"embed.layers": weak["layers"], "embed.hidden": weak["hidden"]}
    if config.preset == "paper" and model not in nn.SPECIALISED:  # it has none of those
        best = best_settings(dataset.name, model)
        homes = {"k": "evolve"}  # the others are the model's
        yield {f"{homes.get(name, 'model')}.{name}": v for name, v in best.items()}
    given = {name: one.presets for name, one in declared().items()}
    for preset in (config.preset, "quick"):
        yield {name: by[preset] for name, by in given.items() if preset in by}


def pick_device(name: str) -> torch.device:
    """A device by name; ``auto`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    check_device(name)
    kind, _, index = name.partition(":")
    # Read here and not by torch.device, which wraps large numbers around.
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"'device' must be one of ['auto', 'cpu'] here: "
            f"{torch.cuda.device_count()} CUDA devices are visible (got {name!r})"
        )
    return torch.device(name)


def _pick_splits(config: RunConfig, dataset: GraphDataset) -> tuple[int, ...]:
    if config.splits is None:
        return tuple(range(min(NUM_SPLITS[config.preset], dataset.num_splits)))
    for index in config.splits:
        dataset.split(index)  # refuses what is not there
    return config.splits


def _check_fit(config: RunConfig, dataset: GraphDataset) -> None:
    """Refuse settings that do not fit the graph or the model."""
    model, k, highest = config.model, config.evolve.k, dataset.num_nodes - 1
    if k is not None and k > highest:
        raise InputError(
            f"'k' must be in [1, {highest}], below the number of nodes (got {k})"
        )
    for index in known(config.splits) if config.embed.cross_fit else ():
        check_folds(dataset.split(index).train_mask, config.embed.cross_fit)
    traits, train = nn.traits_of(model.backbone, model.name), config.train
    weights, name = config.evolve.weights, model.name
    refuse_unless(traits.weighted_edges, name, "edge_weights", weights, "uniform")
    no_layers = ", which is no network of layers of one hop each"
    refuse_unless(traits.one_hop, name, "batch_size", train.batch_size, 0, no_layers)
    leaks = ", in which a label would reach its own node's loss or no other node"
    refuse_unless(traits.label_input, name, "label_input", train.label_input, 0, leaks)


def evolves(model: ModelConfig) -> bool:
    """Whether a model has room for evolved graphs; one that has not is a baseline."""
    return nn.traits_of(model.backbone, model.name).several_graphs


def choose_variants(config: RunConfig) -> list[Variant]:
    """Baseline, one variant per embedding, and what each must beat.

    A model that reads no graph, or the input graph only, is a baseline alone, and so
    is everything with the embedding ``none``.
    """
    names, model, chosen = config.embed.names, config.model, list[Variant]()
    if evolves(model):
        chosen = [variant_of(name) for name in dict.fromkeys(names) if name != "none"]
    elif model.name in nn.SPECIALISED and names not in (("none",), EmbedConfig().names):
        raise InputError(
            f"'embedding' must be one of ['none'] for the model {model.name!r}, which "
            f"reads the input graph only (got {list(names)})"
        )
    needed = dict.fromkeys(c for variant in chosen for c in controls_of(variant))
    # The smaller controls first: they are one for all embeddings of their size.
    controls = sorted(needed, key=lambda control: control.name == "embedding")
    named = (v for v in chosen if v not in controls)
    return [BASELINE, *named, *(v for v in controls if v != BASELINE)]


def check_embeddings(
    variants: Iterable[Variant],
    dataset: GraphDataset,
    config: RunConfig,
    embedders: Mapping[str, Embedder],
) -> list[str]:
    """Look into every file and embedder that the caller brings along.

    It gives what the config cannot know: their contents, as texts for the run's id.
    """
    workspace = Workspace(embedders=embedders)
    contents = []
    parts = (p for each in variants for p in (*each.graphs, *each.inputs))
    for part in dict.fromkeys(parts):
        if not part.startswith((PRECOMPUTED, OWN_PREFIX)):
            continue
        embedder = make_embedder(part, config, workspace)
        if isinstance(embedder, PrecomputedEmbedder):
            split = dataset.split(known(config.splits)[0])
            embed_nodes(embedder, dataset.data(), split, seed=0)
        contents.append(f"{part}={describe_embedder(embedder) or repr(embedder)}")
    return contents
