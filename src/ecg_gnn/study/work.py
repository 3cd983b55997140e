"""What a study has to do: groups of units, claimed in the store one by one.

A grid knows all of its units from the beginning; a search (see
:mod:`ecg_gnn.study.search`) finds them as it goes.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn.config.run_config import Settings
from ecg_gnn.study.executors import Outcome
from ecg_gnn.study.groups import Group
from ecg_gnn.study.store import DatasetInfo, StoreWriter


@dataclass(frozen=True, kw_only=True)
class TrialEnded:
    """One trial of a search that needs no more training."""

    number: int
    trials: int
    """How many were asked for"""
    point: Settings
    ended: str
    """``done``, ``pruned`` or ``failed``"""
    splits: int
    """How many splits and seeds have a score"""
    val: float | None
    """Mean validation score of these"""
    best: float | None
    """Of the best trial so far that is done"""


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """How far the search in one dataset, model and variant is."""

    dataset: str
    model: str
    variant: str
    done: int
    """Trials with a score on every split"""
    pruned: int
    failed: int
    best: Settings | None
    """The best point of those that are done"""
    val: float | None
    """Its mean validation score"""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many units of a recipe are in which state."""

    total: int
    done: int
    failed: int
    running: int
    """In other processes"""


class Work(ABC):
    """Hands out groups of claimed units, and is told how each unit ended."""

    @abstractmethod
    def counts(self) -> Counts:
        """How far everything is."""

    @abstractmethod
    def next(self) -> Group | None:
        """The next claimed units; None if there are none, or none before others end."""

    def ended(
        self, group: Group, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """What the store is to keep of a unit, and the trial that ended with it."""
        return outcome, None

    def total(self) -> int:
        """All units, as far as they are known."""
        return self.counts().total

    def left(self) -> int:
        """Units that this process may still have to do."""
        counts = self.counts()
        return counts.total - counts.done - counts.failed - counts.running

    def summaries(self) -> list[CellSummary]:
        """How far each search is; none for a grid."""
        return []


class GridWork(Work):
    """All units of all groups, in order, except those of other processes."""

    def __init__(
        self,
        writer: StoreWriter,
        recipe: str,
        datasets: Sequence[DatasetInfo],
        groups: Sequence[Group],
        retry_failed: bool,
    ) -> None:
        self._writer, self._retry = writer, retry_failed
        self._rest = iter(groups)
        units = [unit for group in groups for unit in group.stored_units()]
        writer.register(recipe, datasets, units)
        self._units = [unit.id for unit in units]
        wanted = {"missing", "failed"} if retry_failed else {"missing"}
        states = writer.states(self._units)
        self._left = {unit for unit, state in states.items() if state in wanted}

    def counts(self) -> Counts:
        """How far all units of the grid are."""
        states = list(self._writer.states(self._units).values())
        counted = {key: states.count(key) for key in ("done", "failed", "running")}
        return Counts(total=len(states), **counted)

    def total(self) -> int:
        """All units of the grid."""
        return len(self._units)

    def left(self) -> int:
        """Units that this process may still have to do."""
        return len(self._left)

    def next(self) -> Group | None:
        """The claimed units of the next group that has any."""
        for group in self._rest:
            wanted = [unit for unit in group.units.values() if unit in self._left]
            claimed = self._writer.claim(wanted, retry_failed=self._retry)
            self._left.difference_update(set(wanted) - set(claimed))
            if claimed:
                return group.only(claimed)
        return None

    def ended(
        self, group: Group, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """One unit less to do; its outcome is kept as it is."""
        self._left.discard(group.units[split])
        return outcome, None
