"""Sections of settings: dataclasses that bring every field to its declared type."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

from ecg_gnn.system.checks import InputError, check_choice


class Section:
    """Settings that bring every field to its declared type, or refuse it."""

    prefix: ClassVar[str] = ""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, hint in _field_types(kind).items():
            value = _parse(hint, getattr(self, name), f"{self.prefix}{name}")
            # Frozen for everybody else: 0 becomes 0.0 and a list a tuple here, so that
            # equal settings are equal and have one id.
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuse values that no run can have."""


@cache
def _field_types(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def from_mapping(cls: Any, values: Any, name: str) -> Any:
    """Read plain values into a section; unknown keys and wrong types are refused."""
    if not isinstance(values, Mapping):
        raise InputError(f"{name!r} must be a mapping of settings (got {values!r})")
    allowed = list(_field_types(cls))
    for key in values:
        if key not in allowed:
            raise InputError(
                f"a setting of {name!r} must be one of {allowed} (got {key!r})"
            )
    return cls(**values)


def _parse(hint: Any, value: Any, name: str) -> Any:
    """Check a value against a field's type, also as JSON and YAML spell it."""
    if dataclasses.is_dataclass(hint):
        return value if type(value) is hint else from_mapping(hint, value, name)
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if value is None and type(None) in options:
        return None
    wanted = next(option for option in options if option is not type(None))
    if typing.get_origin(wanted) is Literal:
        check_choice(name, value, typing.get_args(wanted))
        return value
    if typing.get_origin(wanted) is dict:
        return _parse_options(value, name)
    if typing.get_origin(wanted) is tuple:
        item = typing.get_args(wanted)[0]
        if not isinstance(value, list | tuple | range):
            raise InputError(f"{name!r} must be a list (got {value!r})")
        return tuple(_parse(item, part, name) for part in value)
    if type(value) is wanted:
        return value
    # YAML reads 3e-5 as text: it wants a dot before the exponent.
    convertible = {int: (Integral,), float: (Real, str)}.get(wanted, ())
    if isinstance(value, convertible) and not isinstance(value, bool):
        try:
            return wanted(value)
        except (ValueError, OverflowError):
            pass
    raise InputError(f"{name!r} must be of type {wanted.__name__} (got {value!r})")


def _parse_options(value: Any, name: str) -> dict[str, Any]:
    """Plain values by name, in the order of the names: equal options are one text."""
    if not isinstance(value, Mapping):
        raise InputError(f"{name!r} must be a mapping of options (got {value!r})")
    for key, inner in value.items():
        if not isinstance(key, str) or not isinstance(inner, str | Real):
            got = f"(got {key!r}: {inner!r})"
            raise InputError(f"{name!r} must map names to numbers or texts {got}")
    return {key: value[key] for key in sorted(value)}
