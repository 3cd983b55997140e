"""Ranges of numbers in a recipe's grid: what a search may try between two ends."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ecg_gnn.config.dotted import number_type
from ecg_gnn.system.checks import InputError, check_choice


@dataclass(frozen=True, kw_only=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole ones if both ends are."""

    low: float
    high: float
    log: bool = False
    """Whether every factor, not every difference, is equally likely"""
    step: float | None = None
    """Distance of the numbers that may be tried; any distance unless given"""

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are tried."""
        return isinstance(self.low, int)

    def __str__(self) -> str:
        return f"a range from {self.low:g} to {self.high:g}"

    def __contains__(self, value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and self.low <= value <= self.high

    @classmethod
    def read(cls, setting: str, values: Mapping[str, Any]) -> Self:
        """Read what a recipe says, as numbers of the kind that the setting takes.

        Raises:
            InputError: For a setting without numbers, or ends that are no range.
        """
        place = f"grid.{setting}"
        allowed = [field.name for field in fields(cls)]
        for key in values:
            check_choice(f"a key of {place}", key, allowed)
        for key in ("low", "high"):
            if key not in values:
                raise InputError(f"{place!r} must have 'low' and 'high' (got no {key})")
        kind = _kind(setting, values)
        numbers = {
            key: _number(f"{place}.{key}", value, kind)
            for key, value in values.items()
            if key != "log"
        }
        found = cls(**numbers, log=values.get("log", False))
        found._check(place)
        return found

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


def _kind(setting: str, values: Mapping[str, Any]) -> type[int] | type[float]:
    """The setting's own type; an option's is only known to its model: as written."""
    if (kind := number_type(setting)) is not None:
        return kind
    ends = values["low"], values["high"]
    return int if all(isinstance(end, int) for end in ends) else float


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
