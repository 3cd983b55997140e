"""What a training is called: a hash of everything that decides its numbers.

The device is not part of it, and neither is a precision that was left to it: stores
filled on different machines hold the same units, and provenance says where each was
computed. Settings that a variant does not read are not part of it either, so that one
baseline serves a whole grid over the evolved graph. What a variant reads follows from
the declarations of settings and embedders.
"""

import dataclasses
import hashlib
import json
from typing import Any, Literal

from ecg_gnn._version import NUMERICS
from ecg_gnn.config.dotted import fields_of, given, with_defaults
from ecg_gnn.config.embedders import EMBEDDERS, entry_of
from ecg_gnn.config.run_config import RunConfig, declared
from ecg_gnn.config.variants import Variant

Purpose = Literal["train", "statistics"]
"""Train a classifier, or only measure the evolved graph."""

_DECLARED = declared()
_NOT_CONTENT = {name for name, one in _DECLARED.items() if not one.identity}
_READ_BY_SOME_EMBEDDER = {
    name
    for entry in EMBEDDERS.values()
    for name in entry.reads
    if name.startswith("embed.")
}


def ignored_settings(variant: Variant, purpose: Purpose) -> set[str]:
    """Settings that change no number of this variant."""
    entries = [entry_of(part) for part in set(variant.embeddings)]
    read: set[str] = set().union(*(entry.reads for entry in entries))
    ignored = set() if entries else _needing("evolved graph")
    if all(entry.is_control for entry in entries):  # they have nothing to weigh by
        ignored |= _needing("similarity")
    if any(entry.has_neighbours for entry in entries):
        ignored |= _READ_BY_SOME_EMBEDDER - read
    else:  # no graph is found by similarity
        ignored |= fields_of("evolve") | fields_of("embed") - {"embed.names"}
    if purpose == "statistics":  # no classifier is trained, and edges are counted
        ignored |= (fields_of("model") | fields_of("train")) - read
        ignored |= _needing("similarity")
    return ignored


def _needing(what: str) -> set[str]:
    return {name for name, one in _DECLARED.items() if one.needs == what}


def canonical(config: RunConfig, variant: Variant, purpose: Purpose) -> RunConfig:
    """The config with nothing in it but what decides this variant's numbers.

    Args:
        config: Resolved, except that a precision left to the device stays so.
        variant: Whose numbers.
        purpose: What is done.
    """
    bare = with_defaults(config, ignored_settings(variant, purpose) | _NOT_CONTENT)
    names = (variant.embedding or "none",)
    return dataclasses.replace(bare, embed=dataclasses.replace(bare.embed, names=names))


def configuration_id(
    config: RunConfig, purpose: Purpose, graph: tuple[str, str], contents: list[str]
) -> str:
    """The name of a canonical config on one graph.

    Args:
        config: As :func:`canonical` gives it.
        purpose: What is done.
        graph: Name and checksum of the dataset, before any random splits.
        contents: What the config cannot know: contents of files with embeddings.
    """
    settings = given(config)
    settings.pop("dataset", None)  # a path, perhaps: the graph's own name stands below
    items = sorted(settings.items())
    return digest([NUMERICS, purpose, list(graph), items, *contents])[:16]


def unit_id(configuration: str, split: int, seed: int) -> str:
    """The name of one training: a configuration on one split from one seed."""
    return digest([configuration, split, seed])[:16]


def digest(content: list[Any]) -> str:
    """A checksum of plain values."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
