"""Errors in one sentence each; names of metrics; times and sizes in words."""

import difflib
import math
import re
from collections.abc import Iterable
from numbers import Real
from typing import Any


class InputError(ValueError):
    """A mistake in what the user gave; the command line prints it as one line.

    Examples:
        >>> from ecg_gnn.system.checks import check_choice
        >>> check_choice("gate", "edge", ["node"])
        Traceback (most recent call last):
        ecg_gnn.system.checks.InputError: 'gate' must be one of ['node'] (got 'edge')
    """


class MissingExtraError(InputError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}: "
            f"pip install 'ecg-gnn[{extra}]' (it is not installed)"
        )


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse ``value`` unless it is one of ``choices``; say which one it is like."""
    allowed = list(choices)
    if value not in allowed:
        hint = did_you_mean(value, allowed)
        raise InputError(f"{name!r} must be one of {allowed} (got {value!r}{hint})")


def check_device(name: str) -> None:
    """Refuse what names no device, whether or not it is there."""
    shown = "cuda:N" if re.fullmatch(r"cuda:\d+", name) else name
    check_choice("device", shown, ["auto", "cpu", "cuda", "cuda:N"])


def did_you_mean(value: Any, choices: Iterable[str], alike: float = 0.6) -> str:
    """The end of a message that offers the choice most like a mistyped value."""
    allowed = {str(choice).lower(): str(choice) for choice in choices}
    close = difflib.get_close_matches(str(value).lower(), allowed, 1, alike)
    return f"; did you mean {allowed[close[0]]!r}?" if close else ""


def check_in_range(
    name: str, value: float, low: float | None, high: float | None
) -> None:
    """Refuse ``value`` unless ``low <= value <= high``; None leaves a side open.

    Infinity and NaN are in no range.
    """
    if not isinstance(value, Real):
        raise InputError(f"{name!r} must be a number (got {value!r:.60})")
    too_low = value == -math.inf if low is None else not value >= low
    too_high = value == math.inf if high is None else not value <= high
    if too_low or too_high or value != value:
        left = "(-inf" if low is None else f"[{low}"
        right = "inf)" if high is None else f"{high}]"
        raise InputError(f"{name!r} must be in {left}, {right} (got {value})")


_LARGE = 1e9  # squares and sums of larger features leave what float32 can hold


def not_finite(said: str, largest: float) -> InputError:
    """What to change where a training gave no numbers; ``largest`` of the features."""
    if largest > _LARGE:
        return InputError(
            f"the features must be at most {_LARGE:g} for training to stay finite (got "
            f"{largest:g}: scale them)"
        )
    return InputError(f"'lr' must be small enough for training to stay finite ({said})")


def printable(text: str) -> str:
    """Text from a file, safe for a terminal: control characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


METRIC_NAMES = {"accuracy": "accuracy", "roc_auc": "ROC AUC"}
"""What people call a metric; a function in ``train.training_task`` computes it."""


def default_metric(num_classes: int) -> str:
    """ROC AUC for two classes, accuracy for more."""
    return "roc_auc" if num_classes == 2 else "accuracy"


def metric_label(metric: str) -> str:
    """How a metric is called in tables, figures and sentences."""
    return METRIC_NAMES[metric]


_TIME = re.compile(r"(?:(\d+\.?\d*)h)?(?:(\d+\.?\d*)m)?(?:(\d+\.?\d*)s)?")


def parse_budget(text: str) -> float:
    """Seconds of 90s, 5m, 1h30m and the like."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None or not any(match.groups()):
        raise InputError(f"'budget' must be like 90s, 5m or 1h30m (got {text!r})")
    parts = zip(match.groups(), (3600, 60, 1), strict=True)
    seconds = sum(float(part or 0) * unit for part, unit in parts)
    check_in_range("budget", seconds, 1, None)
    return seconds


def duration(seconds: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3.5 h, 2.1 days."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def size_text(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"
