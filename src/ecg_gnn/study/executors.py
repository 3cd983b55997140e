"""Where a study's units run: on this machine, unless elsewhere."""

import time
import traceback
from collections.abc import Iterator
from typing import Self

import torch

from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.study.groups import Group
from ecg_gnn.study.records import Result, measure
from ecg_gnn.study.store import Failed
from ecg_gnn.study.units import Unit, UnitRunner, run_units
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.machine import out_of_memory

Outcome = Result | Failed  # how a unit ended


class Executor:
    """Runs units, one group after the other on this machine.

    Others do so elsewhere; only the process that owns an executor writes the store.
    Enter it before anything else; leaving it stops what still runs. A failing unit is
    an outcome like any other and is never raised.

    Args:
        jobs: Parallel trainings; more than one run in processes of their own.
    """

    def __init__(self, jobs: int = 1) -> None:
        check_in_range("jobs", jobs, 1, None)
        self._pool = WorkerPool(jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def pick_device(self, name: str) -> str:
        """The device that a user's choice means where units will run."""
        return str(pick_device(name))

    def run(
        self, groups: Iterator[tuple[Group, UnitRunner]]
    ) -> Iterator[tuple[Group, int, Outcome]]:
        """Yield how each split of every group ended; groups are claimed when taken."""
        for group, runner in groups:
            units = [(group.variant, split) for split in group.units]
            if group.configuration.task == "train":
                for (_, split), ended in run_units(runner, units, self._pool):
                    yield group, split, _outcome(ended)
                continue
            for unit in units:
                try:
                    yield group, unit[1], _measure(runner, unit)
                except Exception as error:
                    yield group, unit[1], _outcome(error)


def _outcome(ended: Result | Exception) -> Outcome:
    """A result as it is; of an error the message, and where it came from."""
    if isinstance(ended, Result):
        return ended
    if isinstance(ended, InputError):
        return Failed("error", str(ended))
    lines = "".join(traceback.format_exception(ended)).splitlines()[-20:]
    kind = "out_of_memory" if out_of_memory(ended) else "error"
    return Failed(kind, "\n".join(lines))


def _measure(runner: UnitRunner, unit: Unit) -> Result:
    """Evolve the graphs of a unit and measure them; only embeddings are trained."""
    started = time.perf_counter()
    graphs = runner.graphs(*unit, runner.workspace(unit[0].name))
    return Result(
        evolved_statistics=[measure(runner.dataset, graph) for graph in graphs],
        seconds=time.perf_counter() - started,
        provenance={**runner.made_with, "threads": torch.get_num_threads()},
    )
