"""Running a study: what is missing is claimed, trained and stored, group by group."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study.executors import Executor, Outcome
from ecg_gnn.study.grid import Only, check_size, recipe_cells
from ecg_gnn.study.groups import Counts, Group, bind_all, describe, load_graphs
from ecg_gnn.study.recipe import Recipe, load_recipe
from ecg_gnn.study.search import CellSearch, CellSummary, SearchWork
from ecg_gnn.study.search_space import Search, Trial, search_spaces
from ecg_gnn.study.store import DatasetInfo, Failed, StoreWriter
from ecg_gnn.study.units import OnProgress, UnitRunner
from ecg_gnn.system.machine import holding


@dataclass(frozen=True)
class Ended:
    """How one unit ended, and how far the study is."""

    group: Group
    split: int
    outcome: Outcome
    ran: int  # units that this process has ended so far
    left: int  # units that it may still have to do
    total: int
    trial: Trial | None = None


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """What a call of :func:`run_study` did and what is left."""

    recipe: str
    counts: Counts
    ran: int
    skipped: dict[str, str]
    searched: list[CellSummary]  # none for a grid


@dataclass(frozen=True, kw_only=True)
class Listeners:
    """Callbacks for a study's progress; each is optional."""

    progress: OnProgress | None = None
    ended: Callable[[Ended], None] = lambda _ended: None
    skipped: Callable[[str, str], None] = lambda _name, _reason: None
    counted: Callable[[Counts], None] = lambda _counts: None  # before anything runs


@holding("fit")
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
    """Run the parts of a recipe that are not in the store yet.

    If killed at any moment, only the units in flight are lost. Run it again to resume,
    or several times at once to fill one store together: every unit is trained once.

    Args:
        recipe: A shipped recipe's name, a YAML file, or a recipe made in Python.
        store: The SQLite file to fill; made if there is none.
        only: Which parts of the recipe to run. Datasets named here are downloaded or
            refused if they are absent; other absent ones are skipped.
        search: How to look for good settings, instead of trying the whole grid.
        data_root: Folder with the official files.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        jobs: Parallel trainings.
        executor: Where units run; by default in ``jobs`` processes of this machine.
        cache: Where embeddings and graphs are kept; by default only during this call.
        retry_failed: Whether to repeat what failed.
        command: What the user typed, for the records.
        listeners: Callbacks.
    """
    listeners, only = listeners or Listeners(), only or Only()
    recipe = load_recipe(recipe)
    cells = recipe_cells(recipe, only)
    check_size(cells, search=search is not None)
    plans = [] if search else [plan for cell in cells for plan in cell.plans()]
    with executor or Executor(jobs) as where, TemporaryDirectory() as temporary:
        device = where.pick_device(device)
        names, fetch = [cell.dataset for cell in cells], only.datasets is not None
        loaded, skipped = load_graphs(names, data_root, fetch=fetch)
        for skipping in skipped.items():
            listeners.skipped(*skipping)
        # Invalid settings are refused here, before there is a store.
        groups = bind_all(plans, loaded, device)
        spaces = search_spaces(cells, loaded, device) if search else []
        # A search has other units than the grid of its recipe.
        name = recipe.name + (f"+{search.sampler}" if search else "")
        with StoreWriter.open(store) as writer:
            work: GridWork | SearchWork
            if search:
                work = SearchWork(writer, spaces, search, name, retry_failed)
            else:
                infos = [describe(dataset) for dataset in loaded.values()]
                work = GridWork(writer, name, infos, groups, retry_failed)
            listeners.counted(work.counts())
            made_with = where.made_with(device) | {"command": command}
            cache = cache or EmbeddingCache(Path(temporary))
            ran = _drive(writer, work, where, made_with, cache, listeners)
            return StudyReport(
                recipe=name,
                counts=work.counts(),
                ran=ran,
                skipped=skipped,
                searched=[cell.summary() for cell in work.cells],
            )


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
        self.cells: list[CellSearch] = []  # a grid has no searches
        self._rest = iter(groups)
        units = [unit for group in groups for unit in group.stored_units()]
        writer.register(recipe, datasets, units)
        self._units = [unit.id for unit in units]
        wanted = {"missing", "failed"} if retry_failed else {"missing"}
        self._left = {unit for unit in self._units if writer.state(unit) in wanted}

    def counts(self) -> Counts:
        """How far all units of the grid are."""
        states = list(map(self._writer.state, self._units))
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

    def ended(self, unit: str, outcome: Outcome) -> tuple[Outcome, Trial | None]:
        """One unit less to do; its outcome stays as it is, and ends no trial."""
        self._left.discard(unit)
        return outcome, None


def _drive(
    writer: StoreWriter,
    work: GridWork | SearchWork,
    executor: Executor,
    made_with: dict[str, Any],
    cache: EmbeddingCache,
    listeners: Listeners,
) -> int:
    """Run until nothing is left that this process could do, and store the outcomes."""
    ran, checkpoints = 0, Path(f"{writer.path}.checkpoints")

    def take() -> tuple[Group, UnitRunner] | None:
        if (group := work.next()) is None:
            return None
        name = group.configuration.id
        return group, UnitRunner(
            dataset=group.dataset,
            config=group.config,
            run_id=name,
            made_with=made_with | group.made_with,
            checkpoints=f"{checkpoints}/{name}-{group.config.seed}-",
            cache=cache,
            on_progress=listeners.progress,
        )

    try:
        for ran, (group, split, outcome) in enumerate(executor.run(take), 1):
            unit = group.units[split]
            outcome, trial = work.ended(unit, outcome)
            if isinstance(outcome, Failed):
                made = made_with | group.made_with
                writer.fail(unit, outcome.kind, outcome.error, made)
            else:
                writer.finish(unit, outcome)
            listeners.ended(Ended(group, split, outcome, ran, *work.left(), trial))
        return ran
    finally:
        writer.release()
        with suppress(OSError):  # it is not there, or other processes still use it
            checkpoints.rmdir()
