"""Settings of a run by their dotted names: ``model.layers``, ``evolve.k``."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from ecg_gnn.config.run_config import OPTION as OPTION
from ecg_gnn.config.run_config import RunConfig, declared
from ecg_gnn.config.run_config import unflatten as unflatten
from ecg_gnn.system.checks import InputError

Settings = Mapping[str, Any]


def flatten(config: RunConfig) -> dict[str, Any]:
    """Every setting of a run by its dotted name."""
    flat: dict[str, Any] = {}
    for name, value in dataclasses.asdict(config).items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": one for inner, one in value.items()}
        else:
            flat[name] = value
    return flat


DEFAULTS = flatten(RunConfig())


def with_defaults(config: RunConfig, names: Iterable[str]) -> RunConfig:
    """The same config with these settings at their defaults."""
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
    if name in declared() and declared()[name].type in (int, float):
        number: type[int] | type[float] = declared()[name].type
        return number
    raise InputError(f"'grid.{name}' must be a list of values (got a range)")
