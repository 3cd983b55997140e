"""What a study has to do, piece by piece: claimed in the store before it is handed out.

A grid knows all of its units from the beginning; a search (see
:mod:`ecg_gnn.study.search`) finds them as it goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.bind import Group
from ecg_gnn.study.outcomes import Outcome
from ecg_gnn.study.store import StoreWriter


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Splits of one group that this process has claimed."""

    group: Group
    splits: tuple[int, ...]
    made_with: Mapping[str, Any] = field(default_factory=dict)
    """What their records say beside versions and machine"""


@dataclass(frozen=True, kw_only=True)
class TrialEnded:
    """One point of a search that needs no more training."""

    number: int
    trials: int
    """How many are asked for"""
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
    """Other processes are busy with them"""

    @classmethod
    def of(cls, states: Sequence[str]) -> "Counts":
        """Count the states of all units."""
        counted = {key: states.count(key) for key in ("done", "failed", "running")}
        return cls(total=len(states), **counted)


class Work(Protocol):
    """Hands out claimed pieces, and is told how each of their units ended."""

    def counts(self) -> Counts:
        """How far everything is."""

    def total(self) -> int:
        """All units, as far as one can know."""

    def left(self) -> int:
        """Units that this process may still have to do."""

    def next(self) -> Piece | None:
        """The next piece; None if there is none, or none before another one ends."""

    def ended(
        self, piece: Piece, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """What the store is to keep of a unit, and the trial that ended with it."""

    def summaries(self) -> list[CellSummary]:
        """How far each search is; none for a grid."""


class GridWork:
    """All units of all groups, in order; what others are doing is theirs.

    Args:
        writer: The store.
        groups: What is to be done; all of it is registered.
        retry_failed: Whether to do again what failed.
    """

    def __init__(
        self, writer: StoreWriter, groups: Sequence[Group], *, retry_failed: bool
    ) -> None:
        self._writer, self._groups, self._retry = writer, groups, retry_failed
        self._rest = iter(groups)
        states = writer.states(self._units())
        wanted = {"missing", "failed"} if retry_failed else {"missing"}
        self._left = {unit for unit, state in states.items() if state in wanted}

    def _units(self) -> list[str]:
        return [unit for group in self._groups for unit in group.units.values()]

    def counts(self) -> Counts:
        """How far all units of the grid are."""
        return Counts.of(list(self._writer.states(self._units()).values()))

    def total(self) -> int:
        """All units of the grid."""
        return len(self._units())

    def left(self) -> int:
        """Units that this process may still have to do."""
        return len(self._left)

    def next(self) -> Piece | None:
        """The claimed splits of the next group that has any."""
        for group in self._rest:
            wanted = [unit for unit in group.units.values() if unit in self._left]
            claimed = self._writer.claim(wanted, retry_failed=self._retry)
            self._left.difference_update(set(wanted) - set(claimed))
            splits = [split for split, unit in group.units.items() if unit in claimed]
            if splits:
                return Piece(group=group, splits=tuple(splits))
        return None

    def ended(
        self, piece: Piece, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """One unit less; it is kept as it is."""
        self._left.discard(piece.group.units[split])
        return outcome, None

    def summaries(self) -> list[CellSummary]:
        """None: nothing is searched for."""
        return []
