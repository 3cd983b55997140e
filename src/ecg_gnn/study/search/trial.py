"""One point of a search: its units, and what is known of them."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.bind import Group

State = Literal["open", "done", "failed", "pruned"]


class TrialUnit(NamedTuple):
    """One training of a trial."""

    group: Group
    split: int
    id: str


@dataclass
class Trial:
    """A point with its units, seed by seed and split by split."""

    number: int
    point: Settings
    groups: Sequence[Group]
    scores: dict[str, float] = field(default_factory=dict)
    """Validation score of every finished unit"""
    failed: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    """Units that other processes are busy with"""
    pruned: bool = False

    @property
    def configuration(self) -> str:
        """The name of the point's configuration."""
        return self.groups[0].configuration.id

    @cached_property
    def units(self) -> list[TrialUnit]:
        """All of them, in the order in which they are run."""
        return [
            TrialUnit(group, split, unit)
            for group in self.groups
            for split, unit in group.units.items()
        ]

    @property
    def state(self) -> State:
        """What can be said of it; one with a failure is not comparable any more."""
        if self.pruned:
            return "pruned"
        if self.failed:
            return "failed"
        return "done" if len(self.scores) == len(self.units) else "open"

    @property
    def val(self) -> float | None:
        """Mean validation score so far: what is searched for."""
        return statistics.fmean(self.scores.values()) if self.scores else None

    def missing(self) -> list[TrialUnit]:
        """Units that nobody has begun."""
        begun = {*self.scores, *self.failed, *self.in_flight, *self.elsewhere}
        return [unit for unit in self.units if unit.id not in begun]

    def per_unit(self) -> dict[int, float]:
        """Every score by its unit's place."""
        ids = [unit.id for unit in self.units]
        return {ids.index(unit): score for unit, score in self.scores.items()}


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The finished trial with the best mean validation score."""
    done = [trial for trial in trials if trial.state == "done"]
    return max(done, key=lambda trial: trial.val or 0.0, default=None)
