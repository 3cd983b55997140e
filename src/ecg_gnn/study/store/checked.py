"""Rows that come from outside: all fields there, none unknown, each of its type."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from ecg_gnn.study.statistics import STATISTICS, Statistics
from ecg_gnn.study.store.rows import Configuration, Result
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.metric_names import METRIC_NAMES

_CHOICES = {
    "metric": tuple(METRIC_NAMES),
    "task": ("train", "statistics"),
    "variant": ("baseline", "ecg", "identity", "random", "oracle"),
    "kind": ("error", "out_of_memory"),
}
Row = TypeVar("Row")


def checked(kind: type[Row], values: Any) -> Row:
    """A row of a dataclass, from plain values.

    Raises:
        InputError: For a field that is missing and has no default, that is unknown, or
            of another type.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"must be a JSON object (got {values!r})")
    hints = _hints(kind)  # type: ignore[arg-type]
    fields = dataclasses.fields(kind)  # type: ignore[arg-type]
    for name, value in values.items():
        check_choice("a field", name, [field.name for field in fields])
        if not _fits(value, hints[name]):
            raise InputError(f"{name!r} must not be {value!r}")
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
    for field in fields:
        if field.name not in values and field.default is dataclasses.MISSING:
            raise InputError(f"{field.name!r} is not there")
    return kind(**values)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Of a few classes, for thousands of rows."""
    return typing.get_type_hints(kind)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of a type, as far as rows of a store have types."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, types.UnionType):
        return any(_fits(value, each) for each in inner)
    if origin is list:
        return isinstance(value, list) and all(_fits(v, inner[0]) for v in value)
    if origin in (dict, Mapping):
        return isinstance(value, dict) and all(
            _fits(v, inner[1]) for v in value.values()
        )
    if hint is Any:
        return True
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and math.isfinite(value)
    return type(value) is hint


def check_statistics(statistics: Statistics) -> None:
    """Refuse a row that lacks what tables show of every graph."""
    if missing := sorted(set(STATISTICS) - set(statistics)):
        raise InputError(f"statistics must have {missing} (they are not there)")


def check_result(configuration: Configuration, result: Result) -> None:
    """Refuse a result that is not one of its configuration."""
    names = configuration.embedding.split(",") if configuration.embedding else []
    if len(result.evolved_statistics) != len(names):
        raise InputError("every evolved graph of a unit must have its statistics")
    for statistics in result.evolved_statistics:
        check_statistics(statistics)
    if configuration.task == "train" and None in (result.val, result.test):
        raise InputError("a training must have its scores")
