"""A study's recipe: datasets, models, variants, grids and splits, checked when made."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, get_args

from ecg_gnn import config
from ecg_gnn.config.identity import Purpose
from ecg_gnn.config.run_config import DEFAULTS, OPTION, Settings, number_type
from ecg_gnn.data.catalogue import find_entry
from ecg_gnn.nn import MODULES, SPECIALISED
from ecg_gnn.system.checks import InputError, check_choice

WINNER = "paper-winner"
"""The variant with the embedding of the paper's best ECG model."""
_OWN_KEYS = {
    "dataset": "datasets",
    "model.name": "models",
    "embed.names": "variants",
    "splits": "splits",
    "seed": "seeds",
    "preset": "preset",
    "device": "--device",
}
_SETTABLE = [name for name in DEFAULTS if name not in _OWN_KEYS]


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers that a search may try; integers if ``low`` and ``high`` are."""

    low: float
    high: float
    log: bool = False
    """Whether to sample evenly on a log scale"""
    step: float | None = None
    """Distance between the numbers; any number may be tried unless given"""

    @property
    def whole(self) -> bool:
        """Whether only integers are tried."""
        return isinstance(self.low, int)

    def __str__(self) -> str:
        return f"a range from {self.low:g} to {self.high:g}"

    def __contains__(self, value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high

    @classmethod
    def read(cls, setting: str, values: Mapping[str, Any]) -> Self:
        """Read a recipe's mapping; numbers get the type that the setting has.

        Raises:
            InputError: For a setting that takes no numbers, or an empty range.
        """
        place = f"grid.{setting}"
        check_mapping(place, values, [field.name for field in fields(cls)])
        for key in ("low", "high"):
            if key not in values:
                raise InputError(f"{place!r} must have 'low' and 'high' (got no {key})")
        kind = number_type(setting)
        if kind is None:  # a model's option is taken as it is written
            ends = values["low"], values["high"]
            kind = int if all(isinstance(end, int) for end in ends) else float
        numbers = {
            key: _number(f"{place}.{key}", value, kind)
            for key, value in values.items()
            if key != "log"
        }
        numbers_range = cls(**numbers, log=values.get("log", False))
        numbers_range._check(place)
        return numbers_range

    def _check(self, place: str) -> None:
        if not isinstance(self.log, bool):
            raise InputError(f"'{place}.log' must be true or false (got {self.log!r})")
        if not self.low < self.high:
            raise InputError(
                f"'{place}.low' must be below 'high' {self.high} (got {self.low})"
            )
        if self.log and self.low <= 0:
            raise InputError(f"'{place}.low' must be above 0 with log (got {self.low})")
        if self.step is not None and (self.log or self.step <= 0):
            raise InputError(
                f"'{place}.step' must be above 0, and not given with log "
                f"(got {self.step})"
            )


Values = tuple[Any, ...] | Range
Grid = Mapping[str, Values]
"""What is tried of every setting, by dotted name."""


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
    """Random seeds; everything is repeated with each"""
    settings: Settings = field(default_factory=dict)
    """Settings of every run, by dotted name"""
    grid: Grid = field(default_factory=dict)
    """Values to try in all combinations; a search also takes ranges"""

    def __post_init__(self) -> None:
        for name in ("datasets", "models", "variants", "seeds"):
            _check_names(name, getattr(self, name))
        for dataset in self.datasets:
            _check_dataset(dataset)
        for model in self.models:
            check_choice("models", model, [*MODULES, *SPECIALISED])
        for variant in self.variants:
            _check_variant(variant)
        presets = [name for name in get_args(config.Preset) if name != "auto"]
        check_choice("preset", self.preset, presets)  # "auto" is not for comparisons
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
    """Settings for some datasets, models or variants only."""

    datasets: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_settings("settings", self.settings)
        for variant in self.variants:
            _check_variant(variant)

    def applies(self, dataset: str, model: str, variant: str) -> bool:
        """Whether a cell is meant; an empty list means all."""
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
        """The same study with these settings everywhere, instead of the recipe's."""
        return replace(self, overrides=(*self.overrides, Override(settings=settings)))


def check_mapping(name: str, values: Any, allowed: list[str]) -> None:
    """Refuse what is no mapping or has an unknown key."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name!r} must be a mapping (got {values!r})")
    for key in values:
        check_choice(f"a key of {name}", key, allowed)


def check_settings(name: str, settings: Any) -> None:
    """Refuse what is no mapping of settings, or has one with a key of its own."""
    check_mapping(name, settings, [*_SETTABLE, *_OWN_KEYS, *_options_in(settings)])
    for key in settings:
        if key in _OWN_KEYS:
            raise InputError(
                f"a key of {name!r} must be one of {_SETTABLE} (got {key!r}: it has "
                f"the place {_OWN_KEYS[key]!r} of its own)"
            )


def _options_in(settings: Any) -> list[str]:
    """Keys that name a model's option, which only the model can check."""
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


def is_file(dataset: str) -> bool:
    """Whether a recipe means a file, not a name of the catalogue."""
    return dataset.endswith(".npz") or os.sep in dataset


def _check_dataset(dataset: Any) -> None:
    if not isinstance(dataset, str):
        raise InputError(f"'datasets' must be a list of names (got {dataset!r})")
    if not is_file(dataset):
        find_entry(dataset.partition(":")[0])


def _number(name: str, value: Any, kind: type[int] | type[float]) -> float:
    # YAML reads 3e-5 as text: it wants a dot before the exponent.
    readable = (int,) if kind is int else (int, float, str)
    try:
        number = kind(value) if isinstance(value, readable) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        wanted = "a whole number" if kind is int else "a number"
        raise InputError(f"{name!r} must be {wanted} (got {value!r})")
    return number
