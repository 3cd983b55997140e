"""The time budget: how users write it, a stopwatch, and the plan that fits into it."""

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ecg_gnn.advise.question import Contender, Plan
from ecg_gnn.system.checks import InputError, check_in_range

_UNITS = {"h": 3600, "m": 60, "s": 1}
_PATTERN = re.compile(r"(?:(\d+\.?\d*)h)?(?:(\d+\.?\d*)m)?(?:(\d+\.?\d*)s)?")
# Kept for the tables and the figure, which come after the last training.
_REPORT_SECONDS, _REPORT_SHARE = 3.0, 0.1
_SAFETY_FACTOR = 1.2  # trainings may be slower than measured on a shared machine
_MIN_STEPS = 20

_Kept = Literal["all", "first k", "cheap", "one"]
# What is given up first stands first: (share of the steps, candidates, splits that
# must fit). Intervals over fewer than five splits are wide, so those are given up last;
# more than these are trained as long as there is time.
_FALLBACKS: tuple[tuple[float, _Kept, int], ...] = (
    (1.0, "all", 5),
    (0.5, "all", 5),
    (0.5, "first k", 5),
    (0.5, "cheap", 5),
    (0.25, "cheap", 5),
    (0.25, "one", 5),
    (0.25, "one", 3),
    (0.25, "one", 2),
    (0.25, "one", 1),
)


def parse_budget(text: str) -> float:
    """Seconds of 90s, 5m, 1h30m and the like."""
    match = _PATTERN.fullmatch(text.strip().lower())
    if match is None or not any(match.groups()):
        raise InputError(f"'budget' must be like 90s, 5m or 1h30m (got {text!r})")
    parts = zip(match.groups(), _UNITS.values(), strict=True)
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


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """The budget ran out in the middle of something."""


@dataclass
class Stopwatch:
    """A budget in seconds that starts to run when this is created."""

    budget: float
    clock: Callable[[], float] = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def left(self) -> float:
        """Seconds left for training: a little is kept for reporting."""
        kept = min(_REPORT_SECONDS, _REPORT_SHARE * self.budget)
        return self.budget - kept - self.spent()

    def check(self) -> None:
        """Raise ``OutOfTime`` if nothing is left."""
        if self.left() <= 0:
            raise OutOfTime


@dataclass(frozen=True)
class Cost:
    """Seconds that a training takes: once, and for each step."""

    fixed: float
    per_step: float

    def seconds(self, steps: int) -> float:
        """Total for this many steps."""
        return self.fixed + steps * self.per_step


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How long the parts of a training take on this graph and machine."""

    plain: Cost
    """Training on the input graph alone."""
    evolved: Cost
    """Training on the input graph and an evolved one with the largest k."""
    embeddings: Mapping[str, Cost]
    """By name; the fixed part is the search for neighbours."""
    shared: frozenset[str]
    """Embeddings that are trained once for all splits."""

    def seconds(self, plan: Plan, num_splits: int) -> float:
        """How long a plan takes on this many of its splits."""
        num_evolved = len(plan.contenders) - 1
        training = self.plain.seconds(plan.steps)
        training += num_evolved * self.evolved.seconds(plan.steps)
        searching = sum(self.embeddings[c.embedding].fixed for c in plan.candidates)
        embedding = sum(
            (1 if name in self.shared else num_splits)
            * plan.steps
            * self.embeddings[name].per_step
            for name in {candidate.embedding for candidate in plan.candidates}
        )
        return num_splits * (training + searching) + embedding


def choose_plan(whole: Plan, speed: Speed, seconds_left: float) -> Plan:
    """The plan that gives up least of the whole one and fits into the time left.

    If none fits, the smallest: the stopwatch will end it.
    """
    for share, kept, num_splits in _FALLBACKS:
        steps = max(_MIN_STEPS, math.ceil(whole.steps * share))
        plan = replace(
            whole,
            steps=min(whole.steps, steps),
            candidates=_keep(whole.candidates, kept, speed),
        )
        needed = speed.seconds(plan, min(num_splits, len(whole.splits)))
        if _SAFETY_FACTOR * needed <= seconds_left:
            break
    return plan


def _keep(
    candidates: Sequence[Contender], kept: _Kept, speed: Speed
) -> tuple[Contender, ...]:
    if kept == "all":
        return tuple(candidates)
    first = [each for each in candidates if each.k == candidates[0].k]
    if kept == "first k":
        return tuple(first)
    costs = [speed.embeddings[each.embedding].per_step for each in first]
    dearest = max(range(len(first)), key=lambda place: (costs[place], place))
    cheap = [*first[:dearest], *first[dearest + 1 :]] or first
    return tuple(cheap if kept == "cheap" else cheap[:1])
