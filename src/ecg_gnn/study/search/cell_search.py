"""The search in one cell: points are proposed, registered, claimed and judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ecg_gnn.config import known
from ecg_gnn.config.dotted import Settings
from ecg_gnn.study.bind import describe
from ecg_gnn.study.outcomes import Failed, Outcome
from ecg_gnn.study.search.cell import SearchCell
from ecg_gnn.study.search.options import Search
from ecg_gnn.study.search.past import Past
from ecg_gnn.study.search.tpe import is_hopeless, propose
from ecg_gnn.study.search.trial import Trial, TrialUnit, best_of
from ecg_gnn.study.store import StoreWriter
from ecg_gnn.study.trials import pruned_mark, trial_mark
from ecg_gnn.study.work import CellSummary, Counts, Piece, TrialEnded
from ecg_gnn.system.seeds import derive_seed

_ATTEMPTS = 10  # at something new, before the first point that is left is taken


class CellSearch:
    """One trial after the other, or a few at a time, until there are enough.

    Args:
        cell: Where to look.
        search: How to.
        recipe: What the store calls it.
        writer: The store.
        trials: Those that the store has.
        places: The place of every configuration in the store.
        retry_failed: Whether to do again what failed.
    """

    def __init__(
        self,
        cell: SearchCell,
        search: Search,
        recipe: str,
        writer: StoreWriter,
        trials: Sequence[Trial],
        places: Mapping[str, int],
        *,
        retry_failed: bool,
    ) -> None:
        self._cell, self._search, self._recipe = cell, search, recipe
        self._writer, self._retry = writer, retry_failed
        self._trials, self._places = list(trials), places
        self._info = describe(cell.graph)
        self._closed = False  # exhausted, or left to another process

    def next(self) -> Piece | None:
        """Claimed units of a trial; None if there are none now."""
        while True:
            for trial in self._under_way():
                if (piece := self._claim(trial)) is not None:
                    return piece
            # Trials may have turned out to be done: then another one has its turn.
            full = len(self._under_way()) >= self._search.at_once
            if full or self._closed or not self._begin():
                return None

    def _under_way(self) -> list[Trial]:
        found = [t for t in self._trials if t.state == "open" and not t.elsewhere]
        return found[: self._search.at_once]

    # --- Claiming ---------------------------------------------------------------------

    def _claim(self, trial: Trial) -> Piece | None:
        """What comes next of a trial, unless it is done, waited for, or others'."""
        while wanted := self._wanted(trial):
            self._register(wanted)
            names = [unit.id for unit in wanted]
            claimed = self._writer.claim(names, retry_failed=self._retry)
            if len(claimed) < len(wanted):
                self._catch_up(trial, set(names) - set(claimed))
            if claimed:
                trial.in_flight.update(claimed)
                return Piece(
                    group=wanted[0].group,
                    splits=tuple(u.split for u in wanted if u.id in claimed),
                    made_with=trial_mark(self._search.sampler, trial.number + 1),
                )
        return None

    def _wanted(self, trial: Trial) -> list[TrialUnit]:
        missing = trial.missing()
        if trial.state != "open" or trial.elsewhere or not missing:
            return []
        if self._search.prune:  # the next split only when the last one was judged
            return [] if trial.in_flight else missing[:1]
        return [unit for unit in missing if unit.group is missing[0].group]

    def _register(self, units: Sequence[TrialUnit]) -> None:
        """Make units known that will be run: those of a pruned trial never are."""
        group, ids = units[0].group, {unit.id for unit in units}
        new = [unit for unit in group.new_units() if unit.id in ids]
        self._writer.register(self._recipe, [self._info], [group.configuration], new)

    def _catch_up(self, trial: Trial, refused: set[str]) -> None:
        """Learn what others did; what they are still doing is theirs."""
        Past.read(self._writer).tell(trial, retry_failed=self._retry)
        trial.elsewhere |= refused - trial.scores.keys() - trial.failed
        self._closed = self._closed or bool(trial.elsewhere)

    # --- Proposing --------------------------------------------------------------------

    def _begin(self) -> bool:
        """Open another trial, if one more is wanted and there is anything to try."""
        if len(self._trials) >= self._search.trials:
            return False
        new = self._propose()
        if new is None:
            self._closed = True
            return False
        self._trials.append(new)
        return True

    def _propose(self) -> Trial | None:
        tried, told = self._cell.space.tried, sorted(self._trials, key=self._place)
        for attempt in range(_ATTEMPTS):
            purpose = ("search", *self._cell.names, len(told), attempt)
            seed = derive_seed(self._search.seed, *purpose)
            if (new := self._untried(propose(tried, told, seed))) is not None:
                return new
        points = map(self._untried, self._cell.all_points())
        return next((trial for trial in points if trial is not None), None)

    def _untried(self, point: Settings) -> Trial | None:
        groups = self._cell.groups(point)
        trial = Trial(number=len(self._trials), point=point, groups=groups)
        tried = {one.configuration for one in self._trials}
        return None if trial.configuration in tried else trial

    def _place(self, trial: Trial) -> int:
        """Trials are told in the store's order, in which a later call finds them."""
        return self._places.get(trial.configuration, len(self._places) + trial.number)

    # --- How units end ----------------------------------------------------------------

    def ended(
        self, piece: Piece, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """Note a unit; the record after which a trial is given up says so."""
        unit = piece.group.units[split]
        trial = next(trial for trial in self._trials if unit in trial.in_flight)
        trial.in_flight.remove(unit)
        if isinstance(outcome, Failed):
            trial.failed.add(unit)
        else:
            trial.scores[unit] = known(outcome.val)
            if self._search.prune and self._gives_up(trial):
                trial.pruned = True
                after, out_of = len(trial.scores), len(trial.units)
                made_with = pruned_mark(outcome.provenance, after, out_of)
                outcome = replace(outcome, provenance=made_with)
        over = trial.state != "open" and not trial.in_flight
        return outcome, self._told(trial) if over else None

    def _gives_up(self, trial: Trial) -> bool:
        tried = self._cell.space.tried
        return trial.state == "open" and is_hopeless(tried, self._trials, trial)

    def _told(self, trial: Trial) -> TrialEnded:
        best = best_of(self._trials)
        return TrialEnded(
            number=trial.number,
            trials=self._search.trials,
            point=trial.point,
            ended=trial.state,
            splits=len(trial.scores),
            val=trial.val,
            best=None if best is None else best.val,
        )

    # --- How far it is ----------------------------------------------------------------

    def counts(self) -> Counts:
        """Units of all trials, those included that are still to be proposed."""
        trials = self._trials
        begun = sum(len(t.scores if t.pruned else t.units) for t in trials)
        more = 0 if self._closed else max(0, self._search.trials - len(trials))
        return Counts(
            total=begun + more * self._cell.num_units,
            done=sum(len(t.scores) for t in trials),
            failed=sum(len(t.failed) for t in trials),
            running=sum(len(t.elsewhere) for t in trials),
        )

    def summary(self) -> CellSummary:
        """How many trials ended how, and the best of them."""
        dataset, model, variant = self._cell.names
        states = [trial.state for trial in self._trials]
        best = best_of(self._trials)
        return CellSummary(
            dataset=dataset,
            model=model,
            variant=variant,
            done=states.count("done"),
            pruned=states.count("pruned"),
            failed=states.count("failed"),
            best=None if best is None else best.point,
            val=None if best is None else best.val,
        )
