"""Variants, what a training is called, and the words for options past the paper.

A training's name is a hash of everything that decides its numbers.

The device is not part of it, and neither is a precision that was left to it: stores
filled on different machines hold the same units, and provenance says where each was
computed. Settings that a variant does not read are not part of it either, so that one
baseline serves a whole grid over the evolved graph. What a variant reads follows from
the declarations of settings and embedders.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ecg_gnn.config import run_config
from ecg_gnn.config.embedders import AS_INPUT, EMBEDDERS, NONE, entry_of, is_control
from ecg_gnn.config.run_config import RunConfig, declared, fields_of, given


@dataclass(frozen=True)
class Variant:
    """One row of a run: the input graph beside these evolved graphs.

    An embedding that begins with ``input:`` makes no graph; its vectors are features.
    """

    name: str
    embeddings: tuple[str, ...] = ()

    @property
    def graphs(self) -> tuple[str, ...]:
        """The embeddings that make a graph each."""
        return tuple(e for e in self.embeddings if not e.startswith(AS_INPUT))

    @property
    def inputs(self) -> tuple[str, ...]:
        """The embeddings whose vectors are further features."""
        given = (e for e in self.embeddings if e.startswith(AS_INPUT))
        return tuple(each.removeprefix(AS_INPUT) for each in given)

    @property
    def embedding(self) -> str | None:
        """The evolved graphs as the user writes them."""
        return ",".join(self.embeddings) or None

    def file_name(self, split: int) -> str:
        """A name for this variant's record on one split."""
        text = "-".join([self.name, *self.embeddings]).replace(AS_INPUT, "input-")
        safe = "".join(c if c.isalnum() or c in "-+" else "_" for c in text)
        if safe != text:  # a path: two of them may look alike, or be too long for one
            safe = f"{safe[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return f"{safe}-split{split}"


VARIANTS = ("baseline", "ecg", "identity", "embedding", "random", "oracle")
"""What a variant can be, in the order of tables."""
BASELINE = Variant("baseline")


def identity_control(num_evolved: int) -> Variant:
    """As many evolved graphs as the variant it controls, each of self-loops only."""
    return Variant("identity", ("identity",) * num_evolved)


def embedding_control(variant: Variant) -> Variant:
    """The same embeddings as features, and self-loops only for each evolved graph.

    So the embedding is there, and every weight, but no edge that was found with it.
    """
    weak = (name for name in variant.graphs if not is_control(name))
    path = identity_control(len(variant.graphs)).embeddings
    return Variant("embedding", (*(f"{AS_INPUT}{name}" for name in weak), *path))


def controlled_embedding(embedding: str | None) -> str | None:
    """The embedding as the user wrote it, also of a control that was made from it."""
    variant = variant_of(embedding)
    alone = variant.name != "embedding" or not variant.graphs
    return embedding if alone else ",".join(variant.inputs)


def controls_of(variant: Variant) -> tuple[Variant, ...]:
    """What an ECG variant must beat for its gain to come from its evolved edges."""
    controls = [BASELINE]
    if variant.graphs:
        controls.append(identity_control(len(variant.graphs)))
    if variant.name == "ecg" and not variant.inputs:
        controls.append(embedding_control(variant))
    return tuple(control for control in controls if control != variant)


def variant_of(embedding: str | None) -> Variant:
    """The variant of an embedding as the user writes it: commas join graphs."""
    if embedding in (None, NONE):
        return BASELINE
    parts = tuple(embedding.split(","))
    if "oracle" in parts:  # whatever else is beside it, test labels were seen
        return Variant("oracle", parts)
    if (made := Variant("embedding", parts)).inputs and {*made.graphs} <= {"identity"}:
        return made
    alike = is_control(parts[0]) and len(set(parts)) == 1
    return Variant(parts[0] if alike else "ecg", parts)


Purpose = Literal["train", "statistics"]
"""Train a classifier, or only measure the evolved graph."""

_NOT_CONTENT = {name for name, one in declared().items() if not one.identity}


def _needing(what: str) -> set[str]:
    return {name for name, one in declared().items() if one.needs == what}


def ignored_settings(variant: Variant, purpose: Purpose) -> set[str]:
    """Settings that change no number of this variant."""
    entries = [entry_of(part) for part in set(variant.embeddings)]
    read: set[str] = set().union(*(entry.reads for entry in entries))
    read_by_any: set[str] = set().union(*(one.reads for one in EMBEDDERS.values()))
    ignored = (read_by_any & fields_of("embed")) - read
    if not variant.graphs:
        ignored |= _needing("evolved graph")
    searched = [entry_of(name) for name in variant.graphs if name != "identity"]
    if all(entry.is_control for entry in searched):  # they have nothing to weigh by
        ignored |= _needing("similarity")
    if not searched and not any(entry.evolved_from for entry in entries):
        ignored |= fields_of("evolve")
    if purpose == "statistics":  # no classifier is trained, and edges are counted
        ignored |= (fields_of("model") | fields_of("train")) - read
        ignored |= _needing("similarity")
    return ignored


def canonical(config: RunConfig, variant: Variant, purpose: Purpose) -> RunConfig:
    """The config with nothing in it but what decides this variant's numbers.

    It is resolved, except that a precision left to the device stays so. Here, unlike
    elsewhere, an MLP without a dropout of its own has the classifier's: it is so in
    records from before it could have its own.
    """
    unread = ignored_settings(variant, purpose) | _NOT_CONTENT
    defaults = {name: run_config.DEFAULTS[name] for name in unread}
    bare = run_config.replaced(config, defaults)
    embed, model = bare.embed, bare.model
    trained = purpose == "train" or any(
        entry_of(part).evolved_from for part in variant.embeddings
    )
    if embed.dropout is not None and not trained:
        model = dataclasses.replace(model, dropout=embed.dropout)
    if embed.dropout == model.dropout:
        embed = dataclasses.replace(embed, dropout=None)
    embed = dataclasses.replace(embed, names=(variant.embedding or NONE,))
    return dataclasses.replace(bare, embed=embed, model=model)


def configuration_id(
    config: RunConfig, purpose: Purpose, graph: tuple[str, str], contents: list[str]
) -> str:
    """The name of a canonical config on one graph.

    ``graph`` is the name and checksum of the dataset, before any random splits;
    ``contents`` is what the config cannot know: contents of files with embeddings.
    """
    settings = given(config)
    settings.pop("dataset", None)  # a path, perhaps: the graph's own name stands below
    items = sorted(settings.items())
    return digest([config.numerics, purpose, list(graph), items, *contents])[:16]


def unit_id(configuration: str, split: int, seed: int) -> str:
    """The name of one training: a configuration on one split from one seed."""
    return digest([configuration, split, seed])[:16]


def digest(content: list[Any]) -> str:
    """A checksum of plain values."""
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


Tags = tuple[str, ...]
# Tables name tags in the order of the declarations, but for these.
_LAST = {"model.gate": 1, "train.label_input": 2}
_TAGGED = {
    name: one
    for name, one in sorted(declared().items(), key=lambda item: _LAST.get(item[0], 0))
    if one.tag is not None
}
LABELS = str(_TAGGED["train.label_input"].tag)
"""Training labels were input: predictions are transductive."""


def run_tags(
    config: RunConfig, embedding: str | None, purpose: Purpose = "train"
) -> Tags:
    """The tags of one variant: those of the options that it reads."""
    return tags_of(canonical(config, variant_of(embedding), purpose))


def tags_of(config: RunConfig) -> Tags:
    """The tags of a canonical configuration, which holds only what is read.

    They are of settings that are not at their defaults; exact search is the paper's.
    """
    settings = given(config)
    if settings.get("evolve.knn") == "exact":
        del settings["evolve.knn"]
    return tuple(str(one.tag) for name, one in _TAGGED.items() if name in settings)


def tags_read_by(embedding: str | None, tags: Sequence[str]) -> Tags:
    """Those of these tags that another variant could have as well."""
    ignored = ignored_settings(variant_of(embedding), "train")
    can = {one.tag for name, one in _TAGGED.items() if name not in ignored}
    return tuple(tag for tag in tags if tag in can)


def tagged(name: str, tags: Sequence[str]) -> str:
    """A name with its tags: ``ECG (mlp), cross-fitted, gated + labels``."""
    parts = [name, *(tag for tag in tags if tag != LABELS)]
    return ", ".join(parts) + (f" + {LABELS}" if LABELS in tags else "")


def explain(tags: Iterable[str]) -> list[str]:
    """A sentence on each of these tags, for under a table or in a model card."""
    wanted = set(tags)
    return [
        f"{'+ ' if one.tag == LABELS else ''}{one.tag}: {one.meaning}."
        for one in _TAGGED.values()
        if one.tag in wanted
    ]
