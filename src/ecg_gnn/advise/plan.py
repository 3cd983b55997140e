"""What fits into the time there is: how many steps, candidates and splits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ecg_gnn.advise.contenders import Contender, with_controls

Kept = Literal["all", "first k", "cheap", "one"]

# What is given up first stands first: (share of the steps, candidates, splits that
# must fit). Intervals over fewer than five splits are wide, so those are given up last;
# more than these are trained as long as there is time.
_RUNGS: tuple[tuple[float, Kept, int], ...] = (
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
_SLOWER = 1.2  # than measured: others may use the machine, too
_MIN_STEPS = 20


@dataclass(frozen=True)
class Cost:
    """Seconds of something that is trained: a fixed part and one for each step."""

    fixed: float
    per_step: float

    def seconds(self, steps: int) -> float:
        """Of so many steps."""
        return self.fixed + steps * self.per_step


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be trained."""

    steps: int
    candidates: tuple[Contender, ...]
    """Of which one is chosen; the first is the last to be given up"""
    splits: tuple[int, ...]
    """In this order, every contender on each"""

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The candidates with all that they are compared with."""
        return with_controls(self.candidates)


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How long the pieces of a training take on this graph and machine."""

    plain: Cost
    """Training on the input graph alone"""
    evolved: Cost
    """Training on the input graph and an evolved one of the largest k"""
    embeddings: Mapping[str, Cost]
    """By name: per step the weak classifier, fixed the search for neighbours"""
    shared: frozenset[str]
    """Embeddings that are trained once for all splits"""

    def seconds(self, plan: Plan, num_splits: int) -> float:
        """How long a plan takes on so many of its splits."""
        rest = len(plan.contenders) - 1
        training = self.plain.seconds(plan.steps)
        training += rest * self.evolved.seconds(plan.steps)
        searching = sum(self.embeddings[c.embedding].fixed for c in plan.candidates)
        embedding = sum(
            (1 if name in self.shared else num_splits)
            * plan.steps
            * self.embeddings[name].per_step
            for name in {candidate.embedding for candidate in plan.candidates}
        )
        return num_splits * (training + searching) + embedding


def choose_plan(whole: Plan, speed: Speed, left: float) -> Plan:
    """The plan that gives up least of the whole one and fits into the time left.

    Where none does, the smallest: the watch will stop it.
    """
    for share, kept, num_splits in _RUNGS:
        plan = replace(
            whole,
            steps=_share_of(whole.steps, share),
            candidates=_keep(whole.candidates, kept, speed),
        )
        needed = speed.seconds(plan, min(num_splits, len(whole.splits)))
        if _SLOWER * needed <= left:
            break
    return plan


def _share_of(steps: int, share: float) -> int:
    return min(steps, max(_MIN_STEPS, math.ceil(steps * share)))


def _keep(
    candidates: Sequence[Contender], kept: Kept, speed: Speed
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
