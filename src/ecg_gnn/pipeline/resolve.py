"""Fill in what was not given, and refuse what does not fit the graph.

A value comes, in this order, from the caller, from what a whole network is usually
used with, from the paper's table, from the preset's column of the declarations, and
from that of ``quick``.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ecg_gnn.config import Precision, RunConfig, declared, known
from ecg_gnn.config.dotted import flatten, replaced
from ecg_gnn.data import GraphDataset
from ecg_gnn.nn import (
    SPECIALISED,
    read_options,
    selectable,
    takes_evolved_graphs,
    takes_labels,
    takes_weights,
)
from ecg_gnn.paper_settings import best_settings
from ecg_gnn.pipeline.cross_fit import check_folds
from ecg_gnn.pipeline.training import network_of
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import computing_in, default_precision

NUM_SPLITS = {"quick": 5, "paper": 10, "auto": 5}
"""How many splits a preset runs, where there are as many."""


def resolve(config: RunConfig, dataset: GraphDataset) -> RunConfig:
    """Fill in everything: the preset's values, the device, the splits.

    Raises:
        InputError: For a model, split or k that does not fit.
    """
    model = config.model
    if model.name not in (allowed := selectable(model.backbone)):
        raise InputError(
            f"'model' must be one of {allowed} for the backbone {model.backbone!r} "
            f"(got {model.name!r})"
        )
    device = pick_device(config.device)
    filled: dict[str, Any] = {
        "device": str(device),
        "splits": _pick_splits(config, dataset),
        "train.precision": _pick_precision(config, device),
        "model.options": dict(read_options(model.name, model.options, model.backbone)),
    }
    asked = flatten(config) | filled
    # Settings that take another's value come last.
    columns = list(_columns(config, dataset))
    waiting = {name: one for name, one in declared().items() if asked[name] is None}
    for name, one in sorted(waiting.items(), key=lambda item: item[1].like is not None):
        values = [column[name] for column in columns if name in column]
        if values:
            value = values[0]
            filled[name] = value(dataset.num_nodes) if callable(value) else value
        elif one.like is not None:
            filled[name] = filled.get(one.like, asked[one.like])
    resolved = replaced(config, filled)
    _check_k(resolved, dataset)
    _check_extras(resolved, dataset)
    _check_model(resolved, dataset)
    return resolved


def _columns(config: RunConfig, dataset: GraphDataset) -> Iterator[Mapping[str, Any]]:
    """Where values come from, by dotted name, the first that has one wins."""
    model = config.model.name
    if model in SPECIALISED:
        usual = SPECIALISED[model].usual
        yield {"model.layers": usual.layers, "model.hidden": usual.hidden} | {
            "train.lr": usual.lr
        }
    if config.preset == "paper":
        yield paper_table(dataset.name, model)
    for preset in (config.preset, "quick"):
        yield {
            name: one.presets[preset]
            for name, one in declared().items()
            if preset in one.presets
        }


def paper_table(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best settings; of a whole network, which it has none of, the MLP's.

    Raises:
        InputError: For a dataset that the paper has no settings for.
    """
    weak = best_settings(dataset, "resnet")
    table = {"embed.layers": weak["layers"], "embed.hidden": weak["hidden"]}
    if model in SPECIALISED:
        return table
    homes = {"layers": "model", "hidden": "model", "drop_edge": "model", "k": "evolve"}
    best = best_settings(dataset, model)
    return table | {f"{homes[name]}.{name}": value for name, value in best.items()}


def pick_device(name: str) -> torch.device:
    """A device by name; ``auto`` is the GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if name != "cpu" and not (kind == "cuda" and (name == kind or index.isdecimal())):
        raise InputError(
            f"'device' must be one of ['auto', 'cpu', 'cuda', 'cuda:N'] (got {name!r})"
        )
    # Read here and not by torch.device, which wraps large numbers around.
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise InputError(
            f"'device' must be one of ['auto', 'cpu'] here: "
            f"{torch.cuda.device_count()} CUDA devices are visible (got {name!r})"
        )
    return torch.device(name)


def _pick_precision(config: RunConfig, device: torch.device) -> Precision:
    if config.train.precision != "auto":
        return config.train.precision
    return default_precision(device)


def _pick_splits(config: RunConfig, dataset: GraphDataset) -> tuple[int, ...]:
    if config.splits is None:
        return tuple(range(min(NUM_SPLITS[config.preset], dataset.num_splits)))
    for index in config.splits:
        dataset.split(index)  # refuses what is not there
    return config.splits


def _check_k(config: RunConfig, dataset: GraphDataset) -> None:
    k, highest = config.evolve.k, dataset.num_nodes - 1
    if k is not None and k > highest:
        raise InputError(
            f"'k' must be in [1, {highest}], below the number of nodes (got {k})"
        )


def _check_extras(config: RunConfig, dataset: GraphDataset) -> None:
    """Refuse options that do not fit, rather than leave them unread."""
    model = config.model
    for index in known(config.splits) if config.embed.cross_fit else ():
        check_folds(dataset.split(index).train_mask, config.embed.cross_fit)
    if config.evolve.weights != "uniform" and not takes_weights(
        model.backbone, model.name
    ):
        raise InputError(
            f"'edge_weights' must be one of ['uniform'] for the model {model.name!r} "
            f"(got {config.evolve.weights!r})"
        )
    if config.train.batch_size and model.name in SPECIALISED:
        raise InputError(
            f"'batch_size' must be 0 for the model {model.name!r}, which is no network "
            f"of layers (got {config.train.batch_size})"
        )
    if config.train.label_input and not takes_labels(model.name):
        raise InputError(
            f"'label_input' must be 0 for the model {model.name!r}, in which a label "
            "would reach its own node's loss or no other node "
            f"(got {config.train.label_input})"
        )


def _check_model(config: RunConfig, dataset: GraphDataset) -> None:
    """Build the network once without memory: what it refuses, it refuses now."""
    model = config.model
    num_graphs = 2 if takes_evolved_graphs(model.backbone, model.name) else 1
    with (
        torch.device("meta"),
        computing_in(config.train.precision, torch.device(config.device)),
    ):
        network_of(replaced(config, {"model.layers": 1}), dataset, num_graphs)
