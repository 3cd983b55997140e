"""Running a study: what is missing is claimed, trained and stored, group by group."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study.executors import Executor, Outcome
from ecg_gnn.study.grid import Only, check_size, recipe_cells
from ecg_gnn.study.groups import Group, bind_all, describe, load_graphs
from ecg_gnn.study.recipe import Recipe, load_recipe
from ecg_gnn.study.records import provenance
from ecg_gnn.study.search import CellSearch, CellSummary, Search, check_grids
from ecg_gnn.study.store import Failed, StoredUnit, StoreWriter
from ecg_gnn.study.table import full_name
from ecg_gnn.study.units import OnProgress, UnitRunner
from ecg_gnn.system.checks import duration
from ecg_gnn.system.machine import holding


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many units of a recipe are in which state."""

    total: int
    done: int
    failed: int
    running: int  # in other processes

    def __str__(self) -> str:
        text = f"{self.total} units: {self.done} done"
        text += f", {self.failed} failed" if self.failed else ""
        return text + (f", {self.running} running elsewhere" if self.running else "")


@dataclass(frozen=True, kw_only=True)
class StudyReport:
    """What a call of :func:`run_study` did and what is left."""

    recipe: str
    counts: Counts
    ran: int
    skipped: dict[str, str]
    searched: list[CellSummary]  # none for a grid


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
    say: Callable[[str], None] = lambda _text: None,
    on_progress: OnProgress | None = None,
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
        say: Called with a line on every unit that has ended, and on the whole.
        on_progress: As for :func:`ecg_gnn.study.run`.
    """
    recipe, only = load_recipe(recipe), only or Only()
    cells = recipe_cells(recipe, only)
    check_size(cells, search=search is not None)
    plans = [] if search else [plan for cell in cells for plan in cell.plans()]
    with executor or Executor(jobs) as where, TemporaryDirectory() as temporary:
        device = where.pick_device(device)
        names = [cell.settings["dataset"] for cell in cells]
        fetch = only.datasets is not None
        loaded, skipped = load_graphs(names, data_root, fetch=fetch)
        for name, why in skipped.items():
            hint = f"--datasets {name} would fetch it or say how to"
            say(f"skipping {name}: {why} ({hint})")
        # Invalid settings are refused here, before there is a store.
        groups = bind_all(plans, loaded, device)
        cells = [cell for cell in cells if cell.settings["dataset"] in loaded]
        if search:
            check_grids(cells, loaded, device)
        with StoreWriter.open(store) as writer:
            writer.register("", map(describe, loaded.values()), [])
            trainer = Trainer(
                writer=writer,
                # A search has other units than the grid of its recipe.
                recipe=recipe.name + (f"+{search.sampler}" if search else ""),
                executor=where,
                made_with=provenance(device) | {"command": command},
                cache=cache or EmbeddingCache(Path(temporary)),
                retry_failed=retry_failed,
                say=say,
                on_progress=on_progress,
            )
            searched = []
            if search:
                given = loaded, device, search
                searched = [CellSearch(trainer, cell, *given).run() for cell in cells]
            else:
                trainer.register(groups)
                say(str(trainer.counts()))
                trainer.train(groups)
            return StudyReport(
                recipe=trainer.recipe,
                counts=trainer.counts(),
                ran=trainer.ran,
                skipped=skipped,
                searched=searched,
            )


@dataclass(kw_only=True)
class Trainer:
    """Trains groups of units, stores what comes of them, and counts."""

    writer: StoreWriter
    recipe: str
    executor: Executor
    made_with: dict[str, Any]  # what all records say
    cache: EmbeddingCache
    retry_failed: bool
    say: Callable[[str], None]
    on_progress: OnProgress | None
    started: float = field(default_factory=time.monotonic)
    ran: int = 0
    _units: list[str] = field(default_factory=list)
    _left: set[str] = field(default_factory=set)  # that this process may have to do

    def register(self, groups: Sequence[Group]) -> None:
        """Make units known, and count them."""
        units = [
            StoredUnit(
                id=unit,
                configuration=group.configuration,
                split=split,
                seed=group.config.seed,
            )
            for group in groups
            for split, unit in group.units.items()
        ]
        self.writer.register(self.recipe, [], units)
        self._units += [unit.id for unit in units]
        free = {"missing", "failed"} if self.retry_failed else {"missing"}
        self._left |= {unit.id for unit in units if self.writer.state(unit.id) in free}

    def counts(self) -> Counts:
        """How far all units are."""
        states = list(map(self.writer.state, self._units))
        counted = {key: states.count(key) for key in ("done", "failed", "running")}
        return Counts(total=len(states), **counted)

    def train(self, groups: Sequence[Group], **made_with: Any) -> None:
        """Run what is missing of groups; returns when all that it could do has ended.

        ``made_with`` is what their records say besides versions and machine.
        """
        made_with = self.made_with | made_with
        try:
            for ended in self.executor.run(self._claimed(groups, made_with)):
                self._store(*ended, made_with)
        finally:
            self.writer.release()
            with suppress(OSError):  # it is not there, or other processes still use it
                Path(f"{self.writer.path}.checkpoints").rmdir()

    def _claimed(
        self, groups: Sequence[Group], made_with: dict[str, Any]
    ) -> Iterator[tuple[Group, UnitRunner]]:
        for group in groups:
            wanted = [unit for unit in group.units.values() if unit in self._left]
            claimed = self.writer.claim(wanted, retry_failed=self.retry_failed)
            self._left -= set(wanted) - set(claimed)
            name, config = group.configuration.id, group.config
            runner = UnitRunner(
                dataset=group.dataset,
                config=config,
                run_id=name,
                made_with=made_with | {"precision": config.train.precision},
                checkpoints=f"{self.writer.path}.checkpoints/{name}-{config.seed}-",
                cache=self.cache,
                on_progress=self.on_progress,
            )
            if claimed:
                yield group.only(claimed), runner

    def _store(
        self, group: Group, split: int, outcome: Outcome, made_with: dict[str, Any]
    ) -> None:
        unit, precision = group.units[split], group.config.train.precision
        if isinstance(outcome, Failed):
            made_with = made_with | {"precision": precision}
            self.writer.fail(unit, outcome.kind, outcome.error, made_with)
        else:
            self.writer.finish(unit, outcome)
        self._left.discard(unit)
        self.ran += 1
        left, total = len(self._left), len(self._units)
        ahead = duration(left * (time.monotonic() - self.started) / self.ran) + " left"
        # How much a search still has to do is known only when it has done it.
        ahead = "" if "search" in made_with else f", {ahead}"
        seed = f" seed {group.config.seed}" if group.config.seed else ""
        self.say(
            f"[{total - left}/{total}] {full_name(group.configuration)} split {split}"
            f"{seed}: {_result_text(outcome)}{ahead}"
        )


def _result_text(outcome: Outcome) -> str:
    if isinstance(outcome, Failed):
        return f"failed ({outcome.kind}): {outcome.error.splitlines()[-1]}"
    if outcome.test is None:
        homophily = outcome.evolved_statistics[0]["edge_homophily"]
        shown = "undefined" if homophily is None else f"{homophily:.3f}"
        return f"h_edge {shown} ({outcome.seconds:.1f} s)"
    test, step = 100 * outcome.test, outcome.best_step
    return f"test {test:.2f} at step {step} ({outcome.seconds:.1f} s)"
