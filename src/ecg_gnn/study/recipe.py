"""A study's recipe: datasets, models, variants, grids and splits, checked when made."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self, get_args

from ecg_gnn import config
from ecg_gnn.config.classify_settings import MODULES, SPECIALISED
from ecg_gnn.config.embedders import check_embedding
from ecg_gnn.config.identity import Purpose
from ecg_gnn.config.run_config import DEFAULTS, OPTION, Settings, number_type
from ecg_gnn.config.setting import field_types, parse
from ecg_gnn.data.catalogue import find_entry, is_graph_folder, is_path
from ecg_gnn.reading import read_text, read_yaml
from ecg_gnn.system.checks import InputError, check_choice, did_you_mean
from ecg_gnn.system.files import expanded

WINNER = "paper-winner"  # the variant with the embedding of the paper's best model
# What has a key of its own in a recipe, or is decided where it runs.
_ELSEWHERE = {"dataset", "model.name", "embed.names", "seed", "splits", "preset"}
_SETTABLE = [name for name in DEFAULTS if name not in {*_ELSEWHERE, "device"}]


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers that a search may try; integers if ``low`` and ``high`` are."""

    low: float
    high: float
    log: bool = False
    step: float | None = None

    @classmethod
    def read(cls, setting: str, values: Mapping[str, Any]) -> Self:
        """Read a recipe's mapping; numbers get the type that the setting has."""
        place = f"grid.{setting}"
        check_mapping(place, values, [each.name for each in fields(cls)])
        if not {"low", "high"} <= values.keys():
            raise InputError(f"{place!r} must have 'low' and 'high' (got {values})")
        kind = number_type(setting)
        if kind is None:  # a model's option is taken as it is written
            ends = values["low"], values["high"]
            kind = int if all(isinstance(end, int) for end in ends) else float
        types = {"low": kind, "high": kind, "step": kind, "log": bool}
        given = {k: parse(types[k], v, f"{place}.{k}") for k, v in values.items()}
        made = cls(**given)
        lowest = 0 if made.log else -math.inf
        may_step = made.step is None or (0 < made.step < math.inf and not made.log)
        if not (lowest < made.low < made.high < math.inf and may_step):
            raise InputError(
                f"{place!r} must have 'low' below 'high', both above 0 with 'log', and "
                f"'step' above 0 and without 'log' (got {given})"
            )
        return made


Values = tuple[Any, ...] | Range
Grid = Mapping[str, Values]
"""What is tried of every setting, by dotted name."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Every dataset with every model, every variant and every point of the grid."""

    datasets: tuple[str, ...]
    models: tuple[str, ...] = ("gcn",)
    # Baseline, embeddings, controls (embedding: one for each), or paper-winner.
    variants: tuple[str, ...] = ("baseline", "mlp", "identity")
    preset: str = "quick"
    splits: tuple[int, ...] | None = None  # as many as the preset has
    seeds: tuple[int, ...] = (0,)
    settings: Settings = field(default_factory=dict)
    grid: Grid = field(default_factory=dict)  # all combinations, or a search's ranges

    def __post_init__(self) -> None:
        for name in ("datasets", "models", "variants", "seeds"):
            _check_names(name, getattr(self, name))
        for dataset in self.datasets:
            if not is_path(dataset) and not is_graph_folder(expanded(dataset)):
                find_entry(dataset.partition(":")[0])
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
                places = "one of ['settings', 'grid'] (got both)"
                raise InputError(f"{name!r} must be in {places}")


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
        named = (self.datasets, dataset), (self.models, model), (self.variants, variant)
        return all(not names or name in names for names, name in named)


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

    def check_has(self, wanted: Mapping[str, Any]) -> None:
        """Refuse datasets, models and variants that are in no part."""
        for key in ("datasets", "models", "variants"):
            names = (name for part in self.parts for name in getattr(part, key))
            allowed = list(dict.fromkeys(names))
            for name in wanted[key] or ():
                if not any(is_wanted(each, [name]) for each in allowed):
                    raise InputError(
                        f"{key!r} must be among those of the recipe {self.name!r}, "
                        f"{allowed} (got {name!r}{did_you_mean(name, allowed)})"
                    )


def is_wanted(name: str, wanted: Sequence[str] | None) -> bool:
    """Whether a name was asked for; a generator also by its name alone."""
    return wanted is None or name in wanted or name.partition(":")[0] in wanted


def check_mapping(name: str, values: Any, allowed: list[str]) -> None:
    """Refuse what is no mapping or has an unknown key."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name!r} must be a mapping (got {values!r})")
    for key in values:
        check_choice(f"a key of {name}", key, allowed)


def check_settings(name: str, settings: Any) -> None:
    """Refuse what is no mapping of settings, or has one with a key of its own."""
    keys = settings if isinstance(settings, Mapping) else ()
    # Only a model can check its options.
    options = [key for key in keys if isinstance(key, str) and key.startswith(OPTION)]
    check_mapping(name, settings, [*_SETTABLE, *options])


def _check_names(name: str, values: tuple[Any, ...]) -> None:
    if not values or len(set(map(repr, values))) != len(values):
        said = f"must name at least one, each once (got {list(values)})"
        raise InputError(f"{name!r} {said}")


def _check_variant(variant: str) -> None:
    named = ["baseline", "embedding", WINNER]
    if variant == "none":
        allowed = [*named, *config.EMBEDDINGS[:-1], *config.CONTROLS]
        check_choice("variants", variant, allowed)
    if variant not in named:
        check_embedding(variant)


_LAB = "ecg_gnn_lab"  # has the recipes as data, and is never imported here
_PART_KEYS = list(field_types(Part))


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    if find_spec(_LAB) is None:
        return []
    names = (entry.name for entry in files(_LAB).joinpath("recipes").iterdir())
    return sorted(name.removesuffix(".yaml") for name in names)


def load_recipe(source: str | Path | Recipe) -> Recipe:
    """A shipped recipe by its name, or the user's own from a YAML file."""
    if isinstance(source, Recipe):
        return source
    text, path = str(source), expanded(source)
    if text in shipped_recipes():
        shipped = files(_LAB).joinpath("recipes", f"{text}.yaml")
        return recipe_from_dict(read_yaml(text, shipped.read_text("utf-8")), text)
    if path.suffix not in (".yaml", ".yml", ".json") and not path.is_file():
        known = shipped_recipes()
        raise InputError(
            f"'recipe' must be a YAML file or one of {known} "
            f"(got {text!r}{did_you_mean(text, known)})"
        )
    return recipe_from_dict(read_yaml(f"'recipe' {text!r}", read_text(path)), path.stem)


def recipe_from_dict(values: Any, name: str) -> Recipe:
    """Read plain values as YAML gives them; keys at the top are defaults of parts."""
    allowed = ["description", "task", "parts", "overrides", *_PART_KEYS]
    check_mapping(f"recipe {name}", values, allowed)
    top = {key: values[key] for key in _PART_KEYS if key in values}
    parts = _tuple("parts", values.get("parts", [])) or ({},)
    overrides = _tuple("overrides", values.get("overrides", []))
    return Recipe(
        name=name,
        description=" ".join(str(values.get("description", "")).split()),
        task=values.get("task", "train"),
        parts=tuple(_read(Part, "parts", _over(top, part)) for part in parts),
        overrides=tuple(_read(Override, "overrides", each) for each in overrides),
    )


def _over(top: Mapping[str, Any], part: Any) -> Any:
    """A part over the defaults; settings and grids are merged name by name."""
    if not isinstance(part, Mapping):
        return part
    both = {
        key: {**top[key], **part[key]}
        for key in ("settings", "grid")
        if isinstance(top.get(key), Mapping) and isinstance(part.get(key), Mapping)
    }
    return {**top, **part, **both}


def _read(kind: Any, name: str, values: Any) -> Any:
    """A part or an override: its lists are tuples, and mappings in its grid ranges."""
    types = field_types(kind)
    check_mapping(name, values, list(types))
    if kind is Part and "datasets" not in values:
        raise InputError("'datasets' must name at least one dataset (got none)")
    own = ("settings", "grid")  # checked against the settings there are
    read = {k: v if k in own else parse(types[k], v, k) for k, v in values.items()}
    if "grid" in read:
        check_settings("grid", read["grid"])
        read["grid"] = {
            key: Range.read(key, tried)
            if isinstance(tried, Mapping)
            else _tuple(f"grid.{key}", tried)
            for key, tried in read["grid"].items()
        }
    return kind(**read)


def _tuple(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name!r} must be a list (got {value!r})")
    return tuple(value)
