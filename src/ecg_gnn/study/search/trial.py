"""One point of a search: its units, and what the store knows about them."""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Self

from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.groups import Group
from ecg_gnn.study.provenance import is_pruned
from ecg_gnn.study.store import Store

State = Literal["open", "done", "failed", "pruned"]


@dataclass
class Trial:
    """A point with its units, seed by seed and split by split; units are ids."""

    number: int
    point: Settings
    groups: Sequence[Group]
    scores: dict[str, float] = field(default_factory=dict)
    """Validation score of every finished unit"""
    failed: set[str] = field(default_factory=set)
    in_flight: set[str] = field(default_factory=set)
    elsewhere: set[str] = field(default_factory=set)
    """Units that other processes are running"""
    pruned: bool = False

    @property
    def configuration(self) -> str:
        """The id of the point's configuration."""
        return self.groups[0].configuration.id

    @cached_property
    def units(self) -> list[str]:
        """All of them, in the order in which they are run."""
        return [unit for group in self.groups for unit in group.units.values()]

    @property
    def state(self) -> State:
        """How it ended; after a failure it cannot be compared any more."""
        if self.pruned:
            return "pruned"
        if self.failed:
            return "failed"
        return "done" if len(self.scores) == len(self.units) else "open"

    @property
    def val(self) -> float | None:
        """Mean validation score so far: what the search maximises."""
        return statistics.fmean(self.scores.values()) if self.scores else None

    def next_group(self, *, one_by_one: bool) -> Group | None:
        """The next units to run, all of one group, or a single one.

        None if there are none, or if those in flight must end first.
        """
        if self.state != "open" or self.elsewhere or (one_by_one and self.in_flight):
            return None
        begun = {*self.scores, *self.failed, *self.in_flight}
        for group in self.groups:
            missing = [unit for unit in group.units.values() if unit not in begun]
            if missing:
                return group.only(missing[:1] if one_by_one else missing)
        return None

    def scores_by_place(self) -> dict[int, float]:
        """Every score by the place of its unit."""
        return {self.units.index(unit): score for unit, score in self.scores.items()}


@dataclass(frozen=True, kw_only=True)
class StoredScores:
    """All that a search knows; it keeps nothing but the store."""

    scores: dict[str, float]
    """Validation score of every finished unit"""
    failed: set[str]
    """Units that failed"""
    pruned: set[str]
    """Configurations that were pruned"""

    @classmethod
    def read(cls, store: Store) -> Self:
        """Everything that has been trained, for any recipe."""
        records = store.records(task="train")
        finished = Counter(record.configuration.id for record in records)
        return cls(
            scores={r.id: r.result.val for r in records if r.result.val is not None},
            failed={failure.id for failure in store.failures()},
            pruned={
                r.configuration.id
                for r in records
                if is_pruned(r.result.provenance, finished[r.configuration.id])
            },
        )

    def update(self, trial: Trial, *, retry_failed: bool) -> None:
        """Tell a trial what is known about it, except failures to be retried."""
        units = set(trial.units) - trial.in_flight
        trial.scores |= {unit: self.scores[unit] for unit in units & self.scores.keys()}
        if not retry_failed:
            trial.failed |= units & self.failed
        trial.pruned = trial.configuration in self.pruned
