"""Presets: what fills the settings that were not given."""

from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from ecg_gnn.config import Precision, RunConfig, known
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed.folds import check_folds
from ecg_gnn.nn import (
    SPECIALISED,
    NetworkSpec,
    build_network,
    read_options,
    selectable,
    takes_evolved_graphs,
    takes_labels,
    takes_weights,
)
from ecg_gnn.paper import best_settings
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import computing_in, default_precision

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Values for every setting that a preset can fill in."""

    layers: int = 3
    hidden: int = 64
    k: int = 10
    drop_edge: float = 0.5
    embed_layers: int = 2
    embed_hidden: int = 64
    steps: int = 200
    lr: float = 3e-3
    num_splits: int = 5


# A few minutes on two cores for a graph of some thousand nodes.
QUICK = Defaults()


def paper_defaults(dataset: str, model: str) -> Defaults:
    """The benchmark's protocol with the paper's best settings.

    Of a specialised model, which the paper has no settings of, those it is used with.
    """
    weak = best_settings(dataset, "resnet")
    base = Defaults(
        embed_layers=weak["layers"],
        embed_hidden=weak["hidden"],
        steps=1000,
        lr=3e-5,
        num_splits=10,
        k=3,
    )
    if model not in SPECIALISED:
        return replace(base, **best_settings(dataset, model))
    usual = SPECIALISED[model].usual
    return replace(base, layers=usual.layers, hidden=usual.hidden, lr=usual.lr)


def quick_defaults(model: str) -> Defaults:
    """The small settings, of a specialised model those that it is used with."""
    if model not in SPECIALISED:
        return QUICK
    usual = SPECIALISED[model].usual
    return replace(QUICK, layers=usual.layers, hidden=usual.hidden, lr=usual.lr)


def resolve(config: RunConfig, dataset: GraphDataset) -> RunConfig:
    """Fill in everything: the preset's values, the device, the splits.

    Raises:
        InputError: For a model, split or k that does not fit.
    """
    model, embed = config.model, config.embed
    if model.name not in (allowed := selectable(model.backbone)):
        raise InputError(
            f"'model' must be one of {allowed} for the backbone {model.backbone!r} "
            f"(got {model.name!r})"
        )
    paper = config.preset == "paper"
    defaults = paper_defaults(dataset.name, model.name) if paper else None
    base = defaults or quick_defaults(model.name)
    device = pick_device(config.device)
    train = replace(
        config.train,
        steps=_first(config.train.steps, base.steps),
        lr=_first(config.train.lr, base.lr),
        precision=_pick_precision(config, device),
    )
    resolved = replace(
        config,
        device=str(device),
        splits=_pick_splits(config, dataset, base.num_splits),
        train=train,
        model=replace(
            model,
            layers=_first(model.layers, base.layers),
            hidden=_first(model.hidden, base.hidden),
            drop_edge=_first(model.drop_edge, base.drop_edge),
            options=dict(read_options(model.name, model.options, model.backbone)),
        ),
        evolve=replace(config.evolve, k=_first(config.evolve.k, base.k)),
        embed=replace(
            embed,
            layers=_first(embed.layers, base.embed_layers),
            hidden=_first(embed.hidden, base.embed_hidden),
            steps=_first(embed.steps, train.steps),
            lr=_first(embed.lr, train.lr),
        ),
    )
    _check_k(resolved, dataset)
    _check_extras(resolved, dataset)
    _check_model(resolved, dataset)
    return resolved


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


def _first(given: _T | None, otherwise: _T) -> _T:
    return otherwise if given is None else given


def _pick_precision(config: RunConfig, device: torch.device) -> Precision:
    if config.train.precision != "auto":
        return config.train.precision
    return default_precision(device)


def _pick_splits(
    config: RunConfig, dataset: GraphDataset, default: int
) -> tuple[int, ...]:
    if config.splits is None:
        return tuple(range(min(default, dataset.num_splits)))
    for index in config.splits:
        dataset.split(index)  # refuses what is not there
    return config.splits


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
    with (
        torch.device("meta"),
        computing_in(config.train.precision, torch.device(config.device)),
    ):
        build_network(
            NetworkSpec(
                backbone=model.backbone,
                model=model.name,
                in_channels=dataset.num_features,
                hidden=known(model.hidden),
                num_classes=dataset.num_classes,
                layers=1,
                num_graphs=2 if takes_evolved_graphs(model.backbone, model.name) else 1,
                dropout=model.dropout,
                norm=model.norm,
                gate=model.gate,
                evolved_layers=model.evolved_layers,
                options=model.options,
                num_nodes=dataset.num_nodes,
            )
        )


def _check_k(config: RunConfig, dataset: GraphDataset) -> None:
    k, highest = config.evolve.k, dataset.num_nodes - 1
    if k is not None and k > highest:
        raise InputError(
            f"'k' must be in [1, {highest}], below the number of nodes (got {k})"
        )
