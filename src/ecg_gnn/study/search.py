"""The search in each cell (a dataset, model and variant): propose, claim, judge."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ecg_gnn.config import known
from ecg_gnn.config.run_config import Settings
from ecg_gnn.study.executors import Outcome
from ecg_gnn.study.groups import Counts, Group, describe
from ecg_gnn.study.records import is_pruned
from ecg_gnn.study.search_space import Search, SearchSpace, Trial, is_hopeless, propose
from ecg_gnn.study.store import Failed, Store, StoreWriter
from ecg_gnn.system.seeds import derive_seed

_MAX_PROPOSALS = 10  # if all have been tried, the first untried point is taken


@dataclass(frozen=True, kw_only=True)
class CellSummary:
    """How far the search in one dataset, model and variant is."""

    dataset: str
    model: str
    variant: str
    done: int
    pruned: int
    failed: int
    best: Settings | None  # the point of the best trial that is done
    val: float | None


class StoredScores:
    """All that has been trained for any recipe: a search knows nothing else."""

    def __init__(self, store: Store) -> None:
        records = store.records(task="train")
        finished = Counter(record.configuration.id for record in records)
        self.scores = {r.id: known(r.result.val) for r in records}
        self.failed = {failure.id for failure in store.failures()}
        self.pruned = {
            r.configuration.id
            for r in records
            if is_pruned(r.result.provenance, finished[r.configuration.id])
        }
        self.configurations = store.configurations()
        self.recipes = store.recipes_of_units()


class CellSearch:
    """One trial after the other, or a few in parallel, until there are enough."""

    def __init__(
        self, study: "SearchWork", space: SearchSpace, stored: StoredScores
    ) -> None:
        self._study, self._space, self._search = study, space, study.search
        self._info = describe(space.graph)
        self._closed = False  # exhausted, or left to another process
        self.trials: list[Trial] = []
        self._stored_before = list(stored.configurations)
        for configuration in stored.configurations.values():  # in the store's order
            if (point := space.point_of(configuration)) is None:
                continue
            trial = self._trial(point)
            if any(study.recipe in stored.recipes.get(u, ()) for u in trial.units):
                self._update(trial, stored)
                self.trials.append(trial)

    def _update(self, trial: Trial, stored: StoredScores) -> None:
        """Tell a trial what is known about it, except failures to be retried."""
        units = set(trial.units) - trial.in_flight
        trial.scores |= {u: stored.scores[u] for u in units & stored.scores.keys()}
        if not self._study.retry_failed:
            trial.failed |= units & stored.failed
        trial.pruned = trial.configuration in stored.pruned

    def next(self) -> Group | None:
        """Claimed units of a trial; None if there are none now."""
        while True:
            room = self._search.at_once
            for trial in self.trials:  # what is claimed may turn out to be done
                if room and trial.state == "open" and not trial.elsewhere:
                    if (group := self._claim(trial)) is not None:
                        return group
                    room -= trial.state == "open" and not trial.elsewhere
            if not room or self._closed or len(self.trials) >= self._search.trials:
                return None
            if (proposed := self._propose()) is None:
                self._closed = True
                return None
            self.trials.append(proposed)

    def _claim(self, trial: Trial) -> Group | None:
        """What comes next of a trial, unless it is done, waiting, or run elsewhere."""
        writer, study = self._study.writer, self._study
        one_by_one = self._search.prune  # judged before the next split starts
        while group := trial.next_group(one_by_one=one_by_one):
            # Only now: units of a pruned trial are never registered.
            writer.register(study.recipe, [self._info], group.stored_units())
            wanted = list(group.units.values())
            claimed = writer.claim(wanted, retry_failed=study.retry_failed)
            if len(claimed) < len(wanted):
                # Read what other processes did; leave them what they are still doing.
                self._update(trial, StoredScores(writer))
                refused = set(wanted) - set(claimed)
                trial.elsewhere |= refused - trial.scores.keys() - trial.failed
                self._closed = self._closed or bool(trial.elsewhere)
            if claimed:
                trial.in_flight.update(claimed)
                mark = {"sampler": self._search.sampler, "trial": trial.number + 1}
                made_with = group.made_with | {"search": mark}
                return replace(group.only(claimed), made_with=made_with)
        return None

    def _propose(self) -> Trial | None:
        """A trial at a point that has not been tried; None if all have been."""
        # In the order in which a later call will find them in the store.
        by_id = {trial.configuration: trial for trial in self.trials}
        order = dict.fromkeys([*self._stored_before, *by_id])
        trials = [by_id[each] for each in order if each in by_id]
        purpose = ("search", *self._space.names, len(trials))
        proposed = (
            propose(
                self._space.cell.grid,
                trials,
                derive_seed(self._search.seed, *purpose, attempt),
            )
            for attempt in range(_MAX_PROPOSALS)
        )
        for point in itertools.chain(proposed, self._space.all_points()):
            trial = self._trial(point)
            if trial.configuration not in by_id:
                return trial
        return None

    def _trial(self, point: Settings) -> Trial:
        groups = self._space.groups(point)
        return Trial(number=len(self.trials), point=point, groups=groups)

    def ended(self, unit: str, outcome: Outcome) -> tuple[Outcome, Trial | None]:
        """Note a unit; the record after which a trial is pruned says so."""
        trial = next(trial for trial in self.trials if unit in trial.in_flight)
        trial.in_flight.remove(unit)
        if isinstance(outcome, Failed):
            trial.failed.add(unit)
        else:
            trial.scores[unit] = known(outcome.val)
            grid, trials = self._space.cell.grid, self.trials
            if self._search.prune and is_hopeless(grid, trials, trial):
                trial.pruned = True
                pruned = {"after": len(trial.scores), "of": len(trial.units)}
                mark = {**outcome.provenance["search"], "pruned": pruned}
                made_with = {**outcome.provenance, "search": mark}
                outcome = replace(outcome, provenance=made_with)
        if trial.state == "open" or trial.in_flight:
            return outcome, None
        trial.best = self._best()[1]
        return outcome, trial

    def _best(self) -> tuple[Settings | None, float | None]:
        """The point of the best trial that is done, and its validation score."""
        done = [(t.point, t.val) for t in self.trials if t.state == "done"]
        return max(done, key=lambda best: best[1] or 0.0, default=(None, None))

    @property
    def num_units_to_come(self) -> int:
        """Of the trials that are still to be proposed."""
        more = 0 if self._closed else max(0, self._search.trials - len(self.trials))
        return more * self._space.num_units

    def summary(self) -> CellSummary:
        """How many trials ended how, and the best of them."""
        names = zip(("dataset", "model", "variant"), self._space.names, strict=True)
        states = Counter(trial.state for trial in self.trials)
        best, val = self._best()
        return CellSummary(
            **dict(names),
            done=states["done"],
            pruned=states["pruned"],
            failed=states["failed"],
            best=best,
            val=val,
        )


class SearchWork:
    """Cell after cell; while one waits for scores, the next ones continue."""

    def __init__(
        self,
        writer: StoreWriter,
        spaces: Sequence[SearchSpace],
        search: Search,
        recipe: str,
        retry_failed: bool,
    ) -> None:
        self.writer, self.search = writer, search
        self.recipe, self.retry_failed = recipe, retry_failed
        self._running: dict[str, CellSearch] = {}  # by unit
        stored = StoredScores(writer)
        self.cells = [CellSearch(self, space, stored) for space in spaces]

    def counts(self) -> Counts:
        """Units of all trials, including those still to be proposed."""
        trials = [trial for cell in self.cells for trial in cell.trials]
        begun = sum(len(t.scores if t.pruned else t.units) for t in trials)
        return Counts(
            total=begun + sum(cell.num_units_to_come for cell in self.cells),
            done=sum(len(t.scores) for t in trials),
            failed=sum(len(t.failed) for t in trials),
            running=sum(len(t.elsewhere) for t in trials),
        )

    def left(self) -> tuple[int, int]:
        """Units that this process may still have to do, and how many there are."""
        counts = self.counts()
        ended = counts.done + counts.failed + counts.running
        return counts.total - ended, counts.total

    def next(self) -> Group | None:
        """Claimed units of the first trial that has any; None before others end."""
        for cell in self.cells:
            if (group := cell.next()) is not None:
                self._running |= dict.fromkeys(group.units.values(), cell)
                return group
        return None

    def ended(self, unit: str, outcome: Outcome) -> tuple[Outcome, Trial | None]:
        """What the store is to keep of a unit, and the trial that ended with it."""
        return self._running.pop(unit).ended(unit, outcome)
