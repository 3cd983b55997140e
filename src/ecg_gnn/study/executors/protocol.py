"""What an executor does: it is given jobs, and gives back how their units ended."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from ecg_gnn.config.identity import Purpose
from ecg_gnn.study.outcomes import (
    FailingRunner,
    Outcome,
    measure_units,
    train_units,
)
from ecg_gnn.study.units import Unit
from ecg_gnn.study.work import Piece
from ecg_gnn.study.workers import WorkerPool


@dataclass(frozen=True, kw_only=True)
class Job:
    """A claimed piece of work, and how its units are run."""

    piece: Piece
    runner: FailingRunner

    def units(self, splits: Sequence[int]) -> list[Unit]:
        """Some of its splits as units."""
        return [(self.piece.group.variant, split) for split in splits]


Ending = tuple[Job, int, Outcome]
"""A job, one of its splits, and how that ended."""


class Executor(Protocol):
    """Runs jobs somewhere, while the process that owns it alone writes the store.

    It is entered before anything else is asked of it; leaving it stops what still runs.
    Failures are outcomes like any: nothing that happens to a unit is raised.
    """

    def __enter__(self) -> Self:
        """Get ready to run jobs."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop what still runs."""

    def pick_device(self, name: str) -> str:
        """The device that a user's choice means where units will run."""

    def made_with(self, device: str) -> dict[str, Any]:
        """What records say of versions and machine."""

    def has_room(self) -> bool:
        """Whether another job could begin, or soon begin, to run."""

    def is_busy(self) -> bool:
        """Whether there are units that have not ended."""

    def start(self, job: Job) -> None:
        """Take a job."""

    def ended(self) -> Iterator[Ending]:
        """Wait a while for units to end; none may have."""


def run_units_of(
    task: Purpose, runner: FailingRunner, units: Sequence[Unit], pool: WorkerPool
) -> Iterator[tuple[Unit, Outcome]]:
    """Do with units what their task asks for; all of them end."""
    if task == "statistics":
        return measure_units(runner, units)
    return train_units(runner, units, pool)
