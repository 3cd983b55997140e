"""What a training is called: a hash of everything that decides its numbers.

The device is not part of it, and neither is a precision that was left to it: stores
filled on different machines hold the same units, and provenance says where each was
computed. Settings that a variant does not read are not part of it either, so that one
baseline serves a whole grid over the evolved graph.
"""

import dataclasses
import hashlib
import json
from typing import Literal

from ecg_gnn._version import NUMERICS
from ecg_gnn.batch_settings import BatchSettings
from ecg_gnn.config import CONTROLS, RunConfig
from ecg_gnn.data import GraphDataset
from ecg_gnn.study.settings import fields_of, given, with_defaults
from ecg_gnn.study.variants import Variant

Task = Literal["train", "statistics"]
"""Train a classifier, or only measure the evolved graph."""

_MLP = {f"embed.{n}" for n in ("layers", "hidden", "steps", "lr")} | {
    "embed.cross_fit",
    "embed.cross_fit_models",
    "model.dropout",
    "train.weight_decay",
    "train.precision",
}
_BGRL = {"embed.hidden", "embed.steps", "embed.bgrl_lr", "train.precision"}
_READ_BY = {"mlp": _MLP, "bgrl": _BGRL, "mlp+bgrl": _MLP | _BGRL}
# Its model is the plain one: gates and label input belong to the last classifier.
_LAST_ONLY = {"model.gate", "train.label_input"} | {
    f"train.{field.name}" for field in dataclasses.fields(BatchSettings)
}
_READ_BY["mlp-gnn"] = (_MLP | fields_of("model") | fields_of("train")) - _LAST_ONLY
_EVOLVED_ONLY = {"model.drop_edge", "model.gate", "model.evolved_layers"}
_READ_BY_SOME = {name for name in _MLP | _BGRL if name.startswith("embed.")}
_NOT_CONTENT = {"preset", "splits", "seed", "device"}


def ignored_settings(variant: Variant, task: Task) -> set[str]:
    """Settings that change no number of this variant."""
    parts = set(variant.embeddings)
    read = set().union(*(_READ_BY.get(part, set()) for part in parts))
    ignored = set() if parts else _EVOLVED_ONLY.copy()
    if parts <= set(CONTROLS):  # which have no similarity to weigh by
        ignored.add("evolve.weights")
    if parts <= {"identity"}:  # no graph is found by similarity
        ignored |= fields_of("evolve") | fields_of("embed") - {"embed.names"}
    else:
        ignored |= _READ_BY_SOME - read
    if task == "statistics":  # no classifier is trained, and edges are counted
        ignored |= (fields_of("model") | fields_of("train")) - read
        ignored.add("evolve.weights")
    return ignored


def canonical(config: RunConfig, variant: Variant, task: Task) -> RunConfig:
    """The config with nothing in it but what decides this variant's numbers.

    Args:
        config: Resolved, except that a precision left to the device stays so.
        variant: Whose numbers.
        task: What is done.
    """
    bare = with_defaults(config, ignored_settings(variant, task) | _NOT_CONTENT)
    names = (variant.embedding or "none",)
    return dataclasses.replace(bare, embed=dataclasses.replace(bare.embed, names=names))


def configuration_id(
    config: RunConfig, task: Task, dataset: GraphDataset, contents: list[str]
) -> str:
    """The name of a canonical config on one graph.

    Args:
        config: As :func:`canonical` gives it.
        task: What is done.
        dataset: The graph, before any random splits.
        contents: What the config cannot know: contents of files with embeddings.
    """
    settings = given(config)
    settings.pop("dataset", None)  # a path, perhaps: the graph's own name stands below
    graph = [dataset.name, dataset.sha256]
    return _digest([NUMERICS, task, graph, sorted(settings.items()), *contents])


def unit_id(configuration: str, split: int, seed: int) -> str:
    """The name of one training: a configuration on one split from one seed."""
    return _digest([configuration, split, seed])


def _digest(content: list[object]) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
