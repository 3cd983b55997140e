"""A unit ends as a result or as a failure; neither stops a study."""

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ecg_gnn.pipeline import evolve
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.statistics import of_evolved
from ecg_gnn.study.store import Curves, Result
from ecg_gnn.study.units import Unit, UnitRunner, run_units
from ecg_gnn.study.workers import LostWorkerError, WorkerPool
from ecg_gnn.system.checks import InputError

_KEPT_LINES = 20


@dataclass(frozen=True)
class Failed:
    """Why a unit has no result."""

    kind: str
    error: str


Outcome = Result | Failed


@dataclass(frozen=True)
class Checkpoints(RunFolder):
    """Where unfinished trainings keep their state; the store has all the rest."""

    prefix: str = ""

    def load(self, name: str) -> Record | None:
        """Nothing: finished trainings are in the store."""
        return None

    def store(self, name: str, record: Record) -> None:
        """Nothing: the store is told by the process that owns it."""

    def checkpoint(self, name: str) -> Path:
        """Where an unfinished training keeps its state."""
        return self.path / f"{self.prefix}-{name}.safetensors"


@dataclass(frozen=True, kw_only=True)
class FailingRunner(UnitRunner):
    """A runner whose errors are answers: those of other processes come back, too."""

    def together(self, units: Sequence[Unit]) -> list[Record]:
        """Train units; one that fails by itself is answered by its failure."""
        try:
            return super().together(units)
        except Exception as error:
            if len(units) > 1:
                raise
            return [failure_of(error)]  # type: ignore[list-item]


def failure_of(error: Exception) -> Failed:
    """An error as the store keeps it: the message, and where it came from."""
    if isinstance(error, InputError):
        return Failed("error", str(error))
    ran_out = isinstance(
        error, MemoryError | torch.OutOfMemoryError
    ) or "can't allocate memory" in str(error)
    lines = "".join(traceback.format_exception(error)).splitlines()[-_KEPT_LINES:]
    return Failed("out_of_memory" if ran_out else "error", "\n".join(lines))


def train_units(
    runner: FailingRunner, units: Sequence[Unit], pool: WorkerPool
) -> Iterator[tuple[Unit, Outcome]]:
    """Train units together, as many at a time as the runner can; all of them end.

    Where a common training fails as a whole (its memory, say, was enough for each but
    not for all), what is left is tried one by one, and so is what was under way when a
    process was killed: only a unit that is killed alone has failed.
    """
    left = list(units)
    try:
        for unit, record in run_units(runner, left.copy(), pool.jobs, pool):
            left.remove(unit)
            yield unit, _outcome(record)
        return
    except Exception as error:
        whole, lost = failure_of(error), isinstance(error, LostWorkerError)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    alone = lost or (pool.jobs == 1 and len(left) > 1)
    for unit in left:
        yield unit, _train_alone(runner, unit, pool) if alone else whole


def _train_alone(runner: FailingRunner, unit: Unit, pool: WorkerPool) -> Outcome:
    try:
        ((_, record),) = run_units(runner, [unit], pool.jobs, pool)
        return _outcome(record)
    except Exception as error:
        return failure_of(error)


def measure_units(
    runner: UnitRunner, units: Sequence[Unit]
) -> Iterator[tuple[Unit, Outcome]]:
    """Evolve graphs and measure them; nothing is trained but embeddings."""
    for unit in units:
        try:
            outcome: Outcome = _measure(runner, unit)
        except Exception as error:
            outcome = failure_of(error)
        yield unit, outcome


def _measure(runner: UnitRunner, unit: Unit) -> Result:
    variant, index = unit
    started = time.perf_counter()
    split, workspace = runner.dataset.split(index), runner.workspace(variant.name)
    graphs = [
        evolve(part, runner.dataset, split, runner.config, workspace)
        for part in variant.embeddings
    ]
    found = [of_evolved(graph, runner.dataset) for graph in graphs]
    return Result(
        val=None,
        test=None,
        best_step=None,
        seconds=time.perf_counter() - started,
        peak_memory_mb=None,
        evolved_statistics=found,
        provenance={**runner.made_with, "threads": torch.get_num_threads()},
    )


def _outcome(record: Record) -> Outcome:
    if isinstance(record, Failed):
        return record
    return Result(
        val=record.val,
        test=record.test,
        best_step=record.best_step,
        seconds=record.seconds,
        peak_memory_mb=record.peak_memory_mb,
        evolved_statistics=record.evolved_statistics,
        provenance=record.provenance,
        curves=Curves.of(record.losses, record.val_scores, record.test_scores),
    )
