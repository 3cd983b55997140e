"""Time as users write it, and a watch that says when it is up."""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ecg_gnn.system.checks import InputError, check_in_range

Clock = Callable[[], float]

_UNITS = {"h": 3600, "m": 60, "s": 1}
_PATTERN = re.compile(r"(?:(\d+\.?\d*)h)?(?:(\d+\.?\d*)m)?(?:(\d+\.?\d*)s)?")
# For the tables and the picture, which come after the last training.
_REPORT_SECONDS, _REPORT_SHARE = 3.0, 0.1


def parse_budget(text: str) -> float:
    """Seconds of 90s, 5m, 1h30m and the like."""
    found = _PATTERN.fullmatch(text.strip().lower())
    if found is None or not any(found.groups()):
        raise InputError(f"'budget' must be like 90s, 5m or 1h30m (got {text!r})")
    parts = zip(found.groups(), _UNITS.values(), strict=True)
    seconds = sum(float(part or 0) * unit for part, unit in parts)
    check_in_range("budget", seconds, 1, None)
    return seconds


def format_budget(seconds: float) -> str:
    """Whole seconds as ``parse_budget`` reads them."""
    left, text = round(seconds), ""
    for name, unit in _UNITS.items():
        count, left = divmod(left, unit)
        text += f"{count}{name}" if count else ""
    return text or "0s"


def round_up(seconds: float) -> float:
    """A budget that one would ask for: whole minutes, or tens of them."""
    unit = 60 if seconds <= 600 else 600
    return unit * math.ceil(seconds / unit)


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """The budget is spent in the middle of something."""


@dataclass
class Stopwatch:
    """A budget in seconds that is running from the moment this is made."""

    budget: float
    clock: Clock = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def left(self) -> float:
        """Seconds left to train in: a little is kept for reporting."""
        kept = min(_REPORT_SECONDS, _REPORT_SHARE * self.budget)
        return self.budget - kept - self.spent()

    def check(self) -> None:
        """Raise ``OutOfTime`` if nothing is left."""
        if self.left() <= 0:
            raise OutOfTime
