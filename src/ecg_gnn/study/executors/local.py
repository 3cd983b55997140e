"""Jobs one after the other on this machine, their units in one process or several."""

from collections import deque
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.study.executors.protocol import Ending, Job, run_units_of
from ecg_gnn.study.provenance import provenance
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import check_in_range


class LocalExecutor:
    """See :class:`ecg_gnn.study.executors.Executor`.

    Args:
        jobs: Trainings at a time; more than one are in processes of their own.
    """

    def __init__(self, jobs: int = 1) -> None:
        check_in_range("jobs", jobs, 1, None)
        self._pool = WorkerPool(jobs)
        self._waiting: deque[Job] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._waiting.clear()
        self._pool.__exit__(kind, error, trace)

    def pick_device(self, name: str) -> str:
        """A device of this machine."""
        return str(pick_device(name))

    def made_with(self, device: str) -> dict[str, Any]:
        """Versions, and this machine."""
        return provenance(device)

    def has_room(self) -> bool:
        """Whether the last job has ended."""
        return not self._waiting

    def is_busy(self) -> bool:
        """Whether a job waits to be run."""
        return bool(self._waiting)

    def start(self, job: Job) -> None:
        """Take a job; it runs when its end is waited for."""
        self._waiting.append(job)

    def ended(self) -> Iterator[Ending]:
        """Run the oldest job, and give its units as they end."""
        job = self._waiting.popleft()
        task, units = job.piece.group.task, job.units(job.piece.splits)
        for (_, split), outcome in run_units_of(task, job.runner, units, self._pool):
            yield job, split, outcome
