"""Options that go past the paper, as words beside the name of every variant."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config import RunConfig
from ecg_gnn.study.identity import Task, canonical, ignored_settings
from ecg_gnn.study.settings import given
from ecg_gnn.study.variants import BASELINE, Variant, variant_of

LABELS = "labels"
"""Training labels were input: predictions are transductive."""
_TAGS = {
    "embed.cross_fit": "cross-fitted",
    "embed.cross_fit_models": "by all models",
    "evolve.weights": "weighted",
    "evolve.knn": "approximate",
    "model.evolved_layers": "in the last layer",
    "model.gate": "gated",
    "train.label_input": LABELS,
}
_MEANINGS = {
    "cross-fitted": "a node's neighbours come from a model that never saw its label; "
    "their own neighbours, over a second evolved layer, may know it",
    "by all models": "those of nodes that train none come from all such models",
    "weighted": "evolved edges weigh what their ends are similar",
    "approximate": "neighbours are found by an index, which misses some",
    "in the last layer": "no other layer reads the evolved graphs",
    "gated": "every node learns how much it takes of each graph",
}
Tags = tuple[str, ...]


def run_tags(config: RunConfig, embedding: str | None, task: Task = "train") -> Tags:
    """Those options of a run that one of its variants reads."""
    return _tags(canonical(config, _variant(embedding), task))


def stored_tags(config: Mapping[str, Any]) -> Tags:
    """Those of a stored configuration, which has nothing but what is read."""
    return _tags(RunConfig.from_dict(config))


def tags_read_by(embedding: str | None, tags: Sequence[str]) -> Tags:
    """Of these tags the ones that another variant could have, too."""
    ignored = ignored_settings(_variant(embedding), "train")
    can = {tag for name, tag in _TAGS.items() if name not in ignored}
    return tuple(tag for tag in tags if tag in can)


def tagged(name: str, tags: Sequence[str]) -> str:
    """A name with its tags: ``ECG (mlp), cross-fitted, gated + labels``."""
    parts = [name, *(tag for tag in tags if tag != LABELS)]
    return ", ".join(parts) + (f" + {LABELS}" if LABELS in tags else "")


def explain(tags: Iterable[str]) -> list[str]:
    """A sentence on each of these tags, for under a table."""
    found = set(tags)
    notes = [f"{tag}: {_MEANINGS[tag]}." for tag in _MEANINGS if tag in found]
    if LABELS in found:
        notes.append(
            f"+ {LABELS}: transductive. Labels of training nodes are input (while "
            "training those of a random share, and only the others are learned): "
            "compare such rows with each other."
        )
    return notes


def _variant(embedding: str | None) -> Variant:
    return BASELINE if embedding is None else variant_of(embedding)


def _tags(config: RunConfig) -> Tags:
    settings = given(config)
    if settings.get("evolve.knn") == "exact":
        del settings["evolve.knn"]
    return tuple(tag for name, tag in _TAGS.items() if name in settings)
