"""Options that go past the paper, as words beside the name of every variant."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ecg_gnn.config.dotted import given
from ecg_gnn.config.identity import Purpose, canonical, ignored_settings
from ecg_gnn.config.run_config import RunConfig, declared
from ecg_gnn.config.variants import BASELINE, Variant, variant_of

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
    return _tags(canonical(config, _variant(embedding), purpose))


def stored_tags(config: Mapping[str, Any]) -> Tags:
    """The tags of a stored configuration, which holds only what is read."""
    return _tags(RunConfig.from_dict(config))


def tags_read_by(embedding: str | None, tags: Sequence[str]) -> Tags:
    """Those of these tags that another variant could have as well."""
    ignored = ignored_settings(_variant(embedding), "train")
    can = {one.tag for name, one in _TAGGED.items() if name not in ignored}
    return tuple(tag for tag in tags if tag in can)


def tagged(name: str, tags: Sequence[str]) -> str:
    """A name with its tags: ``ECG (mlp), cross-fitted, gated + labels``."""
    parts = [name, *(tag for tag in tags if tag != LABELS)]
    return ", ".join(parts) + (f" + {LABELS}" if LABELS in tags else "")


def explain(tags: Iterable[str]) -> list[str]:
    """A sentence on each of these tags, for under a table."""
    wanted = set(tags)
    return [
        f"{'+ ' if one.tag == LABELS else ''}{one.tag}: {one.meaning}."
        for one in _TAGGED.values()
        if one.tag in wanted
    ]


def card_sentences(config: RunConfig, embedding: str) -> list[str]:
    """What a model card says of the options past the paper that its model has."""
    settings = _settings(canonical(config, _variant(embedding), "train"))
    return [one.card for name, one in _TAGGED.items() if name in settings and one.card]


def _variant(embedding: str | None) -> Variant:
    return BASELINE if embedding in (None, "none") else variant_of(str(embedding))


def _settings(config: RunConfig) -> dict[str, Any]:
    settings = given(config)
    if settings.get("evolve.knn") == "exact":
        del settings["evolve.knn"]
    return settings


def _tags(config: RunConfig) -> Tags:
    settings = _settings(config)
    return tuple(str(one.tag) for name, one in _TAGGED.items() if name in settings)
