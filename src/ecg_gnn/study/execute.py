"""Running a study: what is missing is claimed, trained and kept, group by group."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ecg_gnn.checks import InputError, check_in_range
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.presets import pick_device
from ecg_gnn.study.bind import Bound, Group, OnSkipped, bind_all
from ecg_gnn.study.expand import Only, expand
from ecg_gnn.study.outcomes import (
    Checkpoints,
    Failed,
    FailingRunner,
    Outcome,
    measure_units,
    train_units,
)
from ecg_gnn.study.provenance import provenance
from ecg_gnn.study.recipe import Recipe
from ecg_gnn.study.recipe_file import load_recipe
from ecg_gnn.study.store import StoreWriter
from ecg_gnn.study.units import OnProgress
from ecg_gnn.study.workers import WorkerPool


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One unit that ended, and how far the study is."""

    group: Group
    split: int
    outcome: Outcome
    ran: int
    """Units that this process has ended so far"""
    left: int
    """Units that it may still have to do"""
    total: int
    """Units of the recipe"""


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


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """What a call of :func:`run_study` did and what it left."""

    recipe: str
    counts: Counts
    ran: int
    """Units that this call ended"""
    skipped: dict[str, str]
    """Datasets that are not here, and why"""


@dataclass(frozen=True, kw_only=True)
class Listeners:
    """Who is told how a study goes; everybody may be deaf."""

    progress: OnProgress | None = None
    ended: Callable[[Ended], None] | None = None
    skipped: OnSkipped | None = None
    found: Callable[[Counts], None] | None = None
    """Told once, before anything runs"""


def run_study(
    recipe: str | Path | Recipe,
    store: str | Path,
    *,
    only: Only | None = None,
    data_root: str | Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    cache: EmbeddingCache | None = None,
    retry_failed: bool = False,
    command: str | None = None,
    listeners: Listeners | None = None,
) -> StudyReport:
    """Run whatever of a recipe is not in the store yet.

    Killed at any moment it loses the units in flight and nothing else; started again,
    or several times at once on one store, every unit is done once.

    Args:
        recipe: A shipped recipe's name, a YAML file, or a recipe made in Python.
        store: The SQLite file to fill; made if there is none.
        only: What of the recipe is wanted. Datasets named here are fetched or refused
            if they are absent; of the others, absent ones are skipped.
        data_root: Folder with the official files.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        jobs: Trainings at a time, each in a process of its own.
        cache: Where embeddings and graphs are kept; by default as long as this runs.
        retry_failed: Whether to run again what failed.
        command: What the user typed, for the records.
        listeners: Who is told.
    """
    check_in_range("jobs", jobs, 1, None)
    recipe, only, device = load_recipe(recipe), only or Only(), str(pick_device(device))
    listeners = listeners or Listeners()
    bound = bind_all(
        expand(recipe, only),
        data_root,
        device,
        fetch=only.datasets is not None,
        on_skipped=listeners.skipped,
    )
    if not bound.groups:
        raise InputError(
            "none of the recipe's datasets is here "
            f"({'; '.join(bound.skipped.values())}): set --data-root or ECG_DATA to "
            "their folder, or ask with --datasets for one to be downloaded"
        )
    with StoreWriter.open(store) as writer, TemporaryDirectory() as temporary:
        _register(writer, recipe, bound)
        pool = WorkerPool(jobs)
        study = _Study(
            writer=writer,
            groups=bound.groups,
            made_with=provenance(device) | {"command": command},
            cache=cache or EmbeddingCache(Path(temporary)),
            pool=pool,
            listeners=listeners,
        )
        if listeners.found is not None:
            listeners.found(study.counts())
        with writer.heartbeat(), pool:
            ran = study.run(retry_failed)
        counts = study.counts()
    return StudyReport(
        recipe=recipe.name, counts=counts, ran=ran, skipped=bound.skipped
    )


def _register(writer: StoreWriter, recipe: Recipe, bound: Bound) -> None:
    writer.register(
        recipe.name,
        bound.datasets,
        [group.configuration for group in bound.groups],
        [unit for group in bound.groups for unit in group.new_units()],
    )


@dataclass(frozen=True, kw_only=True)
class _Study:
    writer: StoreWriter
    groups: Sequence[Group]
    made_with: dict[str, Any]
    cache: EmbeddingCache
    pool: WorkerPool
    listeners: Listeners

    def counts(self) -> Counts:
        units = [unit for group in self.groups for unit in group.units.values()]
        return Counts.of(list(self.writer.states(units).values()))

    def run(self, retry_failed: bool) -> int:
        """Go through all groups once; what others are doing is theirs."""
        wanted = {"missing", "failed"} if retry_failed else {"missing"}
        units = [unit for group in self.groups for unit in group.units.values()]
        states = self.writer.states(units)
        left = {unit for unit, state in states.items() if state in wanted}
        ran = 0
        try:
            for group in self.groups:
                candidates = [u for u in group.units.values() if u in left]
                claimed = self.writer.claim(candidates, retry_failed=retry_failed)
                left.difference_update(set(candidates) - set(claimed))
                for split, outcome in self._end_all(group, claimed):
                    ran += 1
                    left.discard(group.units[split])
                    self._tell(group, split, outcome, ran, len(left), len(units))
        finally:
            self.writer.release()
            with suppress(OSError):  # it is not there, or others still use it
                _checkpoint_folder(self.writer.path).rmdir()
        return ran

    def _end_all(
        self, group: Group, claimed: Sequence[str]
    ) -> Iterator[tuple[int, Outcome]]:
        """Run a group's claimed units and keep each as soon as it ends."""
        splits = [split for split, unit in group.units.items() if unit in claimed]
        if not splits:
            return
        units = [(group.variant, split) for split in splits]
        runner = self._runner(group)
        if group.task == "statistics":
            ending = measure_units(runner, units)
        else:
            ending = train_units(runner, units, self.pool)
        for (_, split), outcome in ending:
            unit = group.units[split]
            if isinstance(outcome, Failed):
                made_with = runner.made_with
                self.writer.fail(unit, outcome.kind, outcome.error, made_with)
            else:
                self.writer.finish(unit, outcome)
            yield split, outcome

    def _runner(self, group: Group) -> FailingRunner:
        precision = group.config.train.precision
        name = f"{group.configuration.id}-{group.config.seed}"
        return FailingRunner(
            dataset=group.dataset,
            config=group.config,
            run_id=group.configuration.id,
            made_with={**self.made_with, "precision": precision},
            folder=Checkpoints(_checkpoint_folder(self.writer.path), name),
            cache=self.cache,
            on_progress=self.listeners.progress,
        )

    def _tell(
        self,
        group: Group,
        split: int,
        outcome: Outcome,
        ran: int,
        left: int,
        total: int,
    ) -> None:
        if self.listeners.ended is not None:
            self.listeners.ended(
                Ended(
                    group=group,
                    split=split,
                    outcome=outcome,
                    ran=ran,
                    left=left,
                    total=total,
                )
            )


def _checkpoint_folder(store: Path) -> Path:
    return store.with_name(f"{store.name}.checkpoints")
