"""What a study has to do: groups of units, claimed in the store one by one.

A grid knows all of its units from the beginning; a search (see
:mod:`ecg_gnn.study.search`) finds them as it goes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn.study.groups import Group
from ecg_gnn.study.store import DatasetInfo, StoreWriter


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many units of a recipe are in which state."""

    total: int
    done: int
    failed: int
    running: int
    """In other processes"""


class GridWork:
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

    def left(self) -> tuple[int, int]:
        """Units that this process may still have to do, and how many there are."""
        return len(self._left), len(self._units)

    def next(self) -> Group | None:
        """The claimed units of the next group that has any."""
        for group in self._rest:
            wanted = [unit for unit in group.units.values() if unit in self._left]
            claimed = self._writer.claim(wanted, retry_failed=self._retry)
            self._left.difference_update(set(wanted) - set(claimed))
            if claimed:
                return group.only(claimed)
        return None

    def ended(self, unit: str) -> None:
        """One unit less to do."""
        self._left.discard(unit)
