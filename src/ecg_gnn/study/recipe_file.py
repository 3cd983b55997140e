"""Recipes as YAML: those that come with the package, and a user's own."""

from collections.abc import Mapping
from dataclasses import fields
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ecg_gnn.reading import expanded, read_yaml
from ecg_gnn.study.recipe import (
    Grid,
    Override,
    Part,
    Range,
    Recipe,
    check_mapping,
    check_settings,
)
from ecg_gnn.system.checks import InputError

# Recipes are data of the laboratory, which this package never imports.
_LAB = "ecg_gnn_lab"
_PART_KEYS = [f.name for f in fields(Part)]


def shipped_recipes() -> list[str]:
    """Names of the recipes that come with the package."""
    if find_spec(_LAB) is None:
        return []
    names = (Path(entry.name) for entry in files(_LAB).joinpath("recipes").iterdir())
    return sorted(name.stem for name in names if name.suffix == ".yaml")


def load_recipe(source: str | Path | Recipe) -> Recipe:
    """A shipped recipe by its name, or the user's own from a YAML file."""
    if isinstance(source, Recipe):
        return source
    text = str(source)
    path = expanded(text)
    if text in shipped_recipes():
        shipped = files(_LAB).joinpath("recipes", f"{text}.yaml")
        return _parse(shipped.read_text("utf-8"), text, text)
    if path.suffix not in (".yaml", ".yml", ".json") and not path.is_file():
        raise InputError(
            f"'recipe' must be a YAML file or one of {shipped_recipes()} (got {text!r})"
        )
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"'recipe' {text!r} cannot be read ({error})") from None
    return _parse(content, path.stem, text)


def _parse(content: str, name: str, source: str) -> Recipe:
    return recipe_from_dict(read_yaml(f"'recipe' {source!r}", content), name)


def recipe_from_dict(values: Any, name: str) -> Recipe:
    """Read plain values as YAML gives them; unknown keys are refused.

    Keys at the top are defaults for every part.
    """
    allowed = ["description", "task", "parts", "overrides", *_PART_KEYS]
    check_mapping(f"recipe {name}", values, allowed)
    top = {key: values[key] for key in _PART_KEYS if key in values}
    parts = [_read_part(_merge(top, part)) for part in _list(values, "parts") or [{}]]
    return Recipe(
        name=name,
        description=" ".join(str(values.get("description", "")).split()),
        task=values.get("task", "train"),
        parts=tuple(parts),
        overrides=tuple(map(_read_override, _list(values, "overrides"))),
    )


def _merge(top: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """A part over the defaults; settings and grids are merged name by name."""
    check_mapping("parts", part, _PART_KEYS)
    merged = {**top, **part}
    for key in ("settings", "grid"):
        if isinstance(top.get(key), Mapping) and isinstance(part.get(key), Mapping):
            merged[key] = {**top[key], **part[key]}
    return merged


def _read_part(values: Mapping[str, Any]) -> Part:
    if "datasets" not in values:
        raise InputError("'datasets' must name at least one dataset (got none)")
    read = dict(values)
    for key in ("datasets", "models", "variants", "splits", "seeds"):
        if key in read and (key, read[key]) != ("splits", None):  # the preset's
            read[key] = _tuple(key, read[key])
    if "grid" in read:
        read["grid"] = _read_grid(read["grid"])
    return Part(**read)


def _read_grid(values: Any) -> Grid:
    check_settings("grid", values)
    return {
        key: Range.read(key, tried)
        if isinstance(tried, Mapping)
        else _tuple(f"grid.{key}", tried)
        for key, tried in values.items()
    }


def _read_override(values: Any) -> Override:
    allowed = [f.name for f in fields(Override)]
    check_mapping("overrides", values, allowed)
    read: dict[str, Any] = {
        key: value if key == "settings" else _tuple(key, value)
        for key, value in values.items()
    }
    return Override(**read)


def _tuple(name: str, value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{name!r} must be a list (got {value!r})")
    return tuple(value)


def _list(values: Mapping[str, Any], key: str) -> list[Any]:
    return list(_tuple(key, values.get(key, [])))
