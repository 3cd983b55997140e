"""Running a study: what is missing is claimed, trained and kept, piece by piece."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study.bind import Graphs, Group, OnSkipped, bind_all, load_graphs
from ecg_gnn.study.executors import Executor, Job, LocalExecutor
from ecg_gnn.study.expand import Only, spaces
from ecg_gnn.study.outcomes import Checkpoints, Failed, FailingRunner, Outcome
from ecg_gnn.study.recipe import Recipe
from ecg_gnn.study.recipe_file import load_recipe
from ecg_gnn.study.search import Search, SearchWork, search_cells
from ecg_gnn.study.store import StoreWriter
from ecg_gnn.study.units import OnProgress
from ecg_gnn.study.work import (
    CellSummary,
    Counts,
    GridWork,
    Piece,
    TrialEnded,
    Work,
)


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
    trial: TrialEnded | None = None
    """The trial of a search that ended with it"""


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """What a call of :func:`run_study` did and what it left."""

    recipe: str
    counts: Counts
    ran: int
    """Units that this call ended"""
    skipped: dict[str, str]
    """Datasets that are not here, and why"""
    searched: list[CellSummary]
    """How far each search is, and its best settings; none for a grid"""


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
    search: Search | None = None,
    data_root: str | Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    executor: Executor | None = None,
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
        search: How to look for good settings, instead of trying the whole grid.
        data_root: Folder with the official files.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        jobs: Trainings at a time, each in a process of its own.
        executor: Where units run, if not in so many processes of this machine.
        cache: Where embeddings and graphs are kept; by default as long as this runs.
        retry_failed: Whether to run again what failed.
        command: What the user typed, for the records.
        listeners: Who is told.
    """
    listeners, only = listeners or Listeners(), only or Only()
    recipe = load_recipe(recipe)
    found = spaces(recipe, only)
    plans = [plan for space in found for plan in space.plans()] if not search else []
    with executor or LocalExecutor(jobs) as where, TemporaryDirectory() as temporary:
        device = where.pick_device(device)
        graphs = load_graphs(
            [space.dataset for space in found],
            data_root,
            fetch=only.datasets is not None,
            on_skipped=listeners.skipped,
        )
        begin: Callable[[StoreWriter], Work]  # what does not fit is refused before
        if search:
            cells = search_cells(found, graphs, device)
            begin = partial(SearchWork, cells, search, recipe.name, retry_failed)
        else:
            groups = bind_all(plans, graphs, device)
            begin = partial(_registered, recipe.name, graphs, groups, retry_failed)
        with StoreWriter.open(store) as writer:
            work = begin(writer)
            driver = _Driver(
                writer=writer,
                work=work,
                executor=where,
                made_with=where.made_with(device) | {"command": command},
                cache=cache or EmbeddingCache(Path(temporary)),
                listeners=listeners,
            )
            if listeners.found is not None:
                listeners.found(work.counts())
            with writer.heartbeat():
                ran = driver.run()
            return StudyReport(
                recipe=search.recipe_name(recipe.name) if search else recipe.name,
                counts=work.counts(),
                ran=ran,
                skipped=graphs.skipped,
                searched=work.summaries(),
            )


def _registered(
    recipe: str,
    graphs: Graphs,
    groups: Sequence[Group],
    retry_failed: bool,
    writer: StoreWriter,
) -> GridWork:
    """A whole grid, known to the store."""
    writer.register(
        recipe,
        graphs.described(),
        [group.configuration for group in groups],
        [unit for group in groups for unit in group.new_units()],
    )
    return GridWork(writer, groups, retry_failed=retry_failed)


@dataclass(frozen=True, kw_only=True)
class _Driver:
    """Brings work to an executor, and what comes of it into the store."""

    writer: StoreWriter
    work: Work
    executor: Executor
    made_with: dict[str, Any]
    cache: EmbeddingCache
    listeners: Listeners

    def run(self) -> int:
        """Go on until nothing is left that this process could do."""
        ran = 0
        try:
            while self._has_begun():
                for job, split, outcome in self.executor.ended():
                    ran += 1
                    self._keep(job, split, outcome, ran)
        finally:
            self.writer.release()
            with suppress(OSError):  # it is not there, or others still use it
                _checkpoint_folder(self.writer.path).rmdir()
        return ran

    def _has_begun(self) -> bool:
        """Start as much as there is room for; whether anything is under way then."""
        while self.executor.has_room() and (piece := self.work.next()) is not None:
            self.executor.start(Job(piece=piece, runner=self._runner(piece)))
        return self.executor.is_busy()

    def _keep(self, job: Job, split: int, outcome: Outcome, ran: int) -> None:
        """Bring one unit into the store, and say so."""
        group = job.piece.group
        outcome, trial = self.work.ended(job.piece, split, outcome)
        unit = group.units[split]
        if isinstance(outcome, Failed):
            made_with = job.runner.made_with
            self.writer.fail(unit, outcome.kind, outcome.error, made_with)
        else:
            self.writer.finish(unit, outcome)
        if self.listeners.ended is not None:
            self.listeners.ended(
                Ended(
                    group=group,
                    split=split,
                    outcome=outcome,
                    ran=ran,
                    left=self.work.left(),
                    total=self.work.total(),
                    trial=trial,
                )
            )

    def _runner(self, piece: Piece) -> FailingRunner:
        group = piece.group
        precision = group.config.train.precision
        name = f"{group.configuration.id}-{group.config.seed}"
        return FailingRunner(
            dataset=group.dataset,
            config=group.config,
            run_id=group.configuration.id,
            made_with={**self.made_with, "precision": precision, **piece.made_with},
            folder=Checkpoints(_checkpoint_folder(self.writer.path), name),
            cache=self.cache,
            on_progress=self.listeners.progress,
        )


def _checkpoint_folder(store: Path) -> Path:
    return store.with_name(f"{store.name}.checkpoints")
