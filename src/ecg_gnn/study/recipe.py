"""A study's recipe: datasets, models, variants, grids and splits, checked when made."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from ecg_gnn import config
from ecg_gnn.config.dotted import DEFAULTS, OPTION, Settings
from ecg_gnn.config.identity import Purpose
from ecg_gnn.nn import MODULES, SPECIALISED
from ecg_gnn.study.datasets import check_dataset
from ecg_gnn.study.ranges import Range
from ecg_gnn.system.checks import InputError, check_choice

WINNER = "paper-winner"
"""The variant that stands for the embedding of the paper's best ECG model."""
_OWN_KEYS = {
    "dataset": "datasets",
    "model.name": "models",
    "embed.names": "variants",
    "splits": "splits",
    "seed": "seeds",
    "preset": "preset",
    "device": "--device",
}
Grid = Mapping[str, tuple[Any, ...] | Range]
_SETTABLE = [name for name in DEFAULTS if name not in _OWN_KEYS]


@dataclass(frozen=True, kw_only=True)
class Part:
    """Every dataset with every model, every variant and every point of the grid."""

    datasets: tuple[str, ...]
    """Catalogue names, generators with parameters, or .npz files"""
    models: tuple[str, ...] = ("gcn",)
    """Message-passing modules"""
    variants: tuple[str, ...] = ("baseline", "mlp", "identity")
    """baseline, embeddings, controls, or paper-winner"""
    preset: str = "quick"
    """What fills the settings that are not given"""
    splits: tuple[int, ...] | None = None
    """Which splits; the preset's number of them unless given"""
    seeds: tuple[int, ...] = (0,)
    """Repetitions of everything random"""
    settings: Settings = field(default_factory=dict)
    """Settings of every run, by dotted name"""
    grid: Grid = field(default_factory=dict)
    """Values to try in all combinations, by dotted name; a search takes ranges, too"""

    def __post_init__(self) -> None:
        for name in ("datasets", "models", "variants", "seeds"):
            _check_names(name, getattr(self, name))
        for dataset in self.datasets:
            check_dataset(dataset)
        for model in self.models:
            check_choice("models", model, [*MODULES, *SPECIALISED])
        for variant in self.variants:
            _check_variant(variant)
        check_choice("preset", self.preset, get_args(config.Preset))
        check_settings("settings", self.settings)
        check_settings("grid", self.grid)
        for name, values in self.grid.items():
            if not isinstance(values, Range):
                _check_names(f"grid.{name}", values)
            if name in self.settings:
                raise InputError(
                    f"{name!r} must be in one of ['settings', 'grid'] (got both)"
                )


@dataclass(frozen=True, kw_only=True)
class Override:
    """Settings where only some datasets, models or variants have them."""

    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_settings("settings", self.settings)
        for variant in self.variants:
            _check_variant(variant)

    def applies(self, dataset: str, model: str, variant: str) -> bool:
        """Whether a cell is meant; a list that is not given means all."""
        return (
            dataset in (self.datasets or (dataset,))
            and model in (self.models or (model,))
            and variant in (self.variants or (variant,))
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a study computes."""

    name: str
    parts: tuple[Part, ...]
    description: str = ""
    task: Purpose = "train"
    overrides: tuple[Override, ...] = ()

    def __post_init__(self) -> None:
        check_choice("task", self.task, get_args(Purpose))
        if not self.parts:
            raise InputError("'parts' must name at least one part (got none)")

    def with_settings(self, settings: Settings) -> "Recipe":
        """The same study with these settings everywhere, whatever the recipe says."""
        return replace(self, overrides=(*self.overrides, Override(settings=settings)))


def check_mapping(name: str, values: Any, allowed: list[str]) -> None:
    """Refuse what is no mapping or has a key that nobody reads."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name!r} must be a mapping (got {values!r})")
    for key in values:
        check_choice(f"a key of {name}", key, allowed)


def check_settings(name: str, settings: Any) -> None:
    """Refuse what is no mapping of settings, or has some that stand elsewhere."""
    check_mapping(name, settings, [*_SETTABLE, *_OWN_KEYS, *_options_in(settings)])
    for key in settings:
        if key in _OWN_KEYS:
            raise InputError(
                f"a key of {name!r} must be one of {_SETTABLE} (got {key!r}: it has "
                f"the place {_OWN_KEYS[key]!r} of its own)"
            )


def _options_in(settings: Any) -> list[str]:
    """Keys that name an option: which ones there are is known with the model."""
    if not isinstance(settings, Mapping):
        return []
    return [key for key in settings if isinstance(key, str) and key.startswith(OPTION)]


def _check_names(name: str, values: tuple[Any, ...]) -> None:
    if not values or len(set(map(repr, values))) != len(values):
        raise InputError(
            f"{name!r} must name at least one, each once (got {list(values)})"
        )


def _check_variant(variant: Any) -> None:
    if variant in ("baseline", WINNER):
        return
    if not isinstance(variant, str) or variant == "none":
        allowed = ["baseline", WINNER, *config.EMBEDDINGS[:-1], *config.CONTROLS]
        check_choice("variants", variant, allowed)
    config.EmbedConfig(names=(variant,))  # refuses what is no embedding
