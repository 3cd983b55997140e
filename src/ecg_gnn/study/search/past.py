"""What a store knows of trials: nothing else is kept of a search."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from ecg_gnn.study.search.cell import SearchCell
from ecg_gnn.study.search.trial import Trial
from ecg_gnn.study.store import Configuration, Store
from ecg_gnn.study.trials import was_given_up


@dataclass(frozen=True, kw_only=True)
class Past:
    """Scores, failures and trials that were given up."""

    scores: dict[str, float]
    """Validation score of every finished unit"""
    failed: set[str]
    """Units that failed"""
    pruned: set[str]
    """Configurations that were given up"""

    @classmethod
    def read(cls, store: Store) -> Self:
        """All that has been trained, whatever for."""
        records = store.records(task="train")
        finished = Counter(record.configuration.id for record in records)
        return cls(
            scores={r.id: r.result.val for r in records if r.result.val is not None},
            failed={failure.id for failure in store.failures()},
            pruned={
                r.configuration.id
                for r in records
                if was_given_up(r.result.provenance, finished[r.configuration.id])
            },
        )

    def tell(self, trial: Trial, *, retry_failed: bool) -> None:
        """Bring a trial to what is known of it, unless it is to be tried again."""
        units = {unit.id for unit in trial.units} - trial.in_flight
        trial.scores |= {unit: self.scores[unit] for unit in units & self.scores.keys()}
        if not retry_failed:
            trial.failed |= units & self.failed
        trial.pruned = trial.configuration in self.pruned


def known_trials(
    cell: SearchCell,
    configurations: Iterable[Configuration],
    members: Mapping[str, Sequence[str]],
    recipe: str,
) -> list[Trial]:
    """The trials of earlier calls, in the order in which the store got them.

    Args:
        cell: Where they were looked for.
        configurations: Of the store, in its order.
        members: The recipes of every unit.
        recipe: What the store calls the search.
    """
    trials: list[Trial] = []
    for configuration in configurations:
        if (point := cell.point_of(configuration)) is None:
            continue
        trial = Trial(number=len(trials), point=point, groups=cell.groups(point))
        if any(recipe in members.get(unit.id, ()) for unit in trial.units):
            trials.append(trial)
    return trials
