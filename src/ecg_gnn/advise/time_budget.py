"""The time budget: how users write it, a stopwatch, and the plan that fits into it."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from ecg_gnn.advise.question import PLAIN, Contender, Contenders, Plan
from ecg_gnn.config import reads_labels
from ecg_gnn.study.records import Record
from ecg_gnn.system.checks import TIME_UNITS

# Kept for the tables and the figure, which come after the last training.
_REPORT_SECONDS, _REPORT_SHARE = 3.0, 0.1
_SAFETY_FACTOR = 1.2  # trainings may be slower than measured on a shared machine
_MIN_STEPS = 20
# Steps of the short trainings that are timed. The longest gets as many steps as fit
# into a share of the budget, within these limits.
_WARM_UP_STEPS, _SHORT_STEPS = 1, 2
_MIN_LONG_STEPS, _MAX_LONG_STEPS = 6, 40
_TIMING_SHARE = 0.05

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


def format_budget(seconds: float) -> str:
    """Whole seconds as ``parse_budget`` reads them."""
    left, text = round(seconds), ""
    for name, unit in TIME_UNITS.items():
        count, left = divmod(left, unit)
        text += f"{count}{name}" if count else ""
    return text or "0s"


class OutOfTime(Exception):  # noqa: N818 - an answer, not an error
    """The budget ran out in the middle of something."""


class Stopwatch:
    """A budget in seconds that starts to run when this is created."""

    def __init__(self, budget: float, clock: Callable[[], float] = time.monotonic):
        self.budget, self.clock, self._started = budget, clock, clock()

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self._started

    def left(self) -> float:
        """Seconds left for training: a little is kept for reporting."""
        kept = min(_REPORT_SECONDS, _REPORT_SHARE * self.budget)
        return self.budget - kept - self.spent()

    def check(self) -> None:
        """Raise ``OutOfTime`` if nothing is left."""
        if self.left() <= 0:
            raise OutOfTime


class Cost(NamedTuple):
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
    """Embeddings that are trained once for all splits, as none of them reads labels."""

    def seconds(self, plan: Plan, num_splits: int) -> float:
        """How long a plan takes on this many of its splits."""
        training = self.plain.seconds(plan.steps)
        training += (len(plan.contenders) - 1) * self.evolved.seconds(plan.steps)
        searching = sum(self.embeddings[c.embedding].fixed for c in plan.candidates)
        embedding = sum(
            (1 if name in self.shared else num_splits)
            * plan.steps
            * self.embeddings[name].per_step
            for name in {candidate.embedding for candidate in plan.candidates}
        )
        return num_splits * (training + searching) + embedding


def measure_speed(train: Callable[..., Record], plan: Plan, watch: Stopwatch) -> Speed:
    """Time short trainings of the plain network and of every embedding.

    Two lengths separate the cost of a step from what is done once. The scores are
    thrown away: nothing is chosen by them.
    """
    largest_k = max(each.k or 0 for each in plan.candidates)
    probes = [each for each in plan.candidates if each.k == largest_k]

    def time_training(contender: Contender, steps: int) -> tuple[float, float]:
        """Seconds of the classifier's steps, and of all else (embedding, search)."""
        started = watch.spent()
        seconds = train(contender, plan.splits[0], steps, keep=False).seconds
        return seconds, max(0.0, watch.spent() - started - seconds)

    for probe in (PLAIN, probes[0]):  # kernels are built and memory is claimed here
        time_training(probe, _WARM_UP_STEPS)
    started = watch.spent()
    short = {each: time_training(each, _SHORT_STEPS) for each in (PLAIN, *probes)}
    seconds = max(watch.spent() - started, 1e-9)
    fitting = _SHORT_STEPS * _TIMING_SHARE * watch.budget / seconds
    steps = int(min(max(fitting, _MIN_LONG_STEPS), _MAX_LONG_STEPS))
    long = {each: time_training(each, steps) for each in (PLAIN, *probes)}
    training, embedding = (
        {each: _fit_cost(short[each][part], long[each][part], steps) for each in long}
        for part in (0, 1)
    )
    return Speed(
        plain=training[PLAIN],
        evolved=max((training[p] for p in probes), key=lambda cost: cost.seconds(100)),
        embeddings={probe.embedding: embedding[probe] for probe in probes},
        shared=frozenset(p.embedding for p in probes if not reads_labels(p.embedding)),
    )


def _fit_cost(short: float, long: float, steps: int) -> Cost:
    """The line through two timings; noise must not make any part negative."""
    per_step = max(0.0, (long - short) / (steps - _SHORT_STEPS))
    return Cost(max(0.0, short - _SHORT_STEPS * per_step), per_step)


def choose_plan(whole: Plan, speed: Speed, seconds_left: float) -> Plan:
    """The plan that gives up least of the whole one and fits into the time left.

    If none fits, the smallest: the stopwatch will end it.
    """
    for share, kept, num_splits in _FALLBACKS:
        steps = min(whole.steps, max(_MIN_STEPS, math.ceil(whole.steps * share)))
        candidates = _keep(whole.candidates, kept, speed)
        plan = replace(whole, steps=steps, candidates=candidates)
        needed = speed.seconds(plan, min(num_splits, len(whole.splits)))
        if _SAFETY_FACTOR * needed <= seconds_left:
            break
    return plan


def _keep(candidates: Contenders, kept: _Kept, speed: Speed) -> Contenders:
    if kept == "all":
        return candidates
    first = tuple(each for each in candidates if each.k == candidates[0].k)
    if kept == "first k":
        return first
    costs = [speed.embeddings[each.embedding].per_step for each in first]
    dearest = max(range(len(first)), key=lambda place: (costs[place], place))
    cheap = first[:dearest] + first[dearest + 1 :] or first
    return cheap if kept == "cheap" else cheap[:1]
