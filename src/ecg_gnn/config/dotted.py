"""Settings of a run by their dotted names: ``model.layers``, ``evolve.k``."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ecg_gnn.config.run_config import ALL_SECTIONS, RunConfig
from ecg_gnn.config.setting import field_types, plain_type
from ecg_gnn.system.checks import InputError

Settings = Mapping[str, Any]
OPTION = "model.options."
"""How the dotted name of an option that only one model has begins."""


def flatten(config: RunConfig) -> dict[str, Any]:
    """Every setting of a run by its dotted name."""
    flat: dict[str, Any] = {}
    for name, value in dataclasses.asdict(config).items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": found for inner, found in value.items()}
        else:
            flat[name] = value
    return flat


def unflatten(settings: Settings) -> dict[str, Any]:
    """Nested values as ``RunConfig.from_dict`` reads them."""
    nested: dict[str, Any] = {}
    for name, value in settings.items():
        section, dot, inner = name.partition(".")
        if name.startswith(OPTION):  # one of the options, over all of them
            model = nested.setdefault(section, {})
            option = name.removeprefix(OPTION)
            model["options"] = {**model.get("options", {}), option: value}
        elif dot:
            nested.setdefault(section, {})[inner] = value
        else:
            nested[name] = value
    return nested


DEFAULTS = flatten(RunConfig())


def with_defaults(config: RunConfig, names: Iterable[str]) -> RunConfig:
    """The same config with these settings as if nobody had given them."""
    return replaced(config, {name: DEFAULTS[name] for name in names})


def given(config: RunConfig) -> dict[str, Any]:
    """The settings that differ from their defaults.

    A setting added to the program later, whose default is what was done before, is
    not among them: what was computed keeps its name.
    """
    return {
        name: value
        for name, value in flatten(config).items()
        if value != DEFAULTS[name]
    }


def replaced(config: RunConfig, settings: Settings) -> RunConfig:
    """The same config with other values, checked like any."""
    return RunConfig.from_dict(unflatten(flatten(config) | dict(settings)))


def fields_of(section: str) -> set[str]:
    """Dotted names of all settings of a section."""
    return {name for name in DEFAULTS if name.startswith(f"{section}.")}


def number_type(name: str) -> type[int] | type[float] | None:
    """Which numbers a setting takes; None for an option, which its model knows.

    Raises:
        InputError: If it takes no numbers.
    """
    if name.startswith(OPTION):
        return None
    for kind in ALL_SECTIONS:
        for inner, hint in field_types(kind).items():
            if f"{kind.prefix}{inner}" == name and plain_type(hint) in (int, float):
                number: type[int] | type[float] = plain_type(hint)
                return number
    raise InputError(f"'grid.{name}' must be a list of values (got a range)")
