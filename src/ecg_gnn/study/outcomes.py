"""Running units of a study: each ends with a result or a failure; neither stops it."""

import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.config.identity import Purpose
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.statistics import of_evolved
from ecg_gnn.study.store import Curves, Failed, Result
from ecg_gnn.study.store.rows import names_of
from ecg_gnn.study.units import Unit, UnitRunner, run_units
from ecg_gnn.study.workers import LostWorkerError, WorkerPool
from ecg_gnn.system.checks import InputError

_TRACEBACK_LINES = 20
Outcome = Result | Failed
"""How a unit ended."""


@dataclass(frozen=True)
class Checkpoints(RunFolder):
    """Where unfinished trainings keep their state; everything else is in the store."""

    prefix: str = ""

    def load(self, name: str) -> Record | None:
        """Nothing: finished trainings are in the store."""
        return None

    def store(self, name: str, record: Record) -> None:
        """Nothing: the process that owns the store writes the record."""

    def checkpoint(self, name: str) -> Path:
        """Where an unfinished training keeps its state."""
        return self.path / f"{self.prefix}-{name}.safetensors"


@dataclass(frozen=True, kw_only=True)
class FailingRunner(UnitRunner):
    """Returns the failure of a unit, also from other processes, instead of raising."""

    def together(self, units: Sequence[Unit]) -> list[Record]:
        """Train units; for a unit that fails alone, return its failure."""
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
    lines = "".join(traceback.format_exception(error)).splitlines()[-_TRACEBACK_LINES:]
    return Failed("out_of_memory" if ran_out else "error", "\n".join(lines))


def run_group(
    task: Purpose, runner: FailingRunner, units: Sequence[Unit], pool: WorkerPool
) -> Iterator[tuple[Unit, Outcome]]:
    """Train or measure units of one group; every one of them ends."""
    if task == "train":
        return _train(runner, units, pool)
    return ((unit, _measured(runner, unit)) for unit in units)


def _train(
    runner: FailingRunner, units: Sequence[Unit], pool: WorkerPool
) -> Iterator[tuple[Unit, Outcome]]:
    """Train as many units at a time as the runner can.

    If a common training fails as a whole (memory may be enough for each unit but not
    for all), or a process is killed, the rest is tried one by one: only a unit that
    fails alone has failed.
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


def _measured(runner: UnitRunner, unit: Unit) -> Outcome:
    """Evolve the graphs of a unit and measure them; only embeddings are trained."""
    variant, index = unit
    started = time.perf_counter()
    try:
        graphs = runner.graphs(variant, index, runner.workspace(variant.name))
        statistics = [of_evolved(graph, runner.dataset) for graph in graphs]
    except Exception as error:
        return failure_of(error)
    return Result(
        val=None,
        test=None,
        best_step=None,
        seconds=time.perf_counter() - started,
        peak_memory_mb=None,
        evolved_statistics=statistics,
        provenance={**runner.made_with, "threads": torch.get_num_threads()},
    )


def _outcome(record: Record) -> Outcome:
    if isinstance(record, Failed):
        return record
    curves = Curves.of(record.losses, record.val_scores, record.test_scores)
    names = [name for name in names_of(Result) if name != "curves"]
    values: dict[str, Any] = {name: getattr(record, name) for name in names}
    return Result(**values, curves=curves)
