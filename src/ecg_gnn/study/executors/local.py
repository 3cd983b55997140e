"""What an executor does, and the one for this machine: one process or several."""

from collections import deque
from collections.abc import Iterator
from typing import Any, Protocol, Self

from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.study.groups import Group
from ecg_gnn.study.outcomes import FailingRunner, Outcome, run_group
from ecg_gnn.study.provenance import provenance
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import check_in_range

Ending = tuple[Group, int, Outcome]
"""A group, one of its splits, and how that unit ended."""


class Executor(Protocol):
    """Runs units somewhere; only the process that owns it writes the store.

    Enter it before anything else; leaving it stops what still runs. A failing unit is
    an outcome like any other and is never raised.
    """

    def __enter__(self) -> Self:
        """Get ready to run units."""

    def __exit__(self, *_: object) -> None:
        """Stop what still runs."""

    def pick_device(self, name: str) -> str:
        """The device that a user's choice means where units will run."""

    def made_with(self, device: str) -> dict[str, Any]:
        """What records say about versions and machine."""

    def has_room(self) -> bool:
        """Whether another group could start now or soon."""

    def is_busy(self) -> bool:
        """Whether there are units that have not ended."""

    def start(self, group: Group, runner: FailingRunner) -> None:
        """Take a group of claimed units, and how to run them."""

    def ended(self) -> Iterator[Ending]:
        """Wait a while for units to end; there may be none."""


class LocalExecutor:
    """Runs one group after the other on this machine.

    Args:
        jobs: Parallel trainings; more than one run in processes of their own.
    """

    def __init__(self, jobs: int = 1) -> None:
        check_in_range("jobs", jobs, 1, None)
        self._pool = WorkerPool(jobs)
        self._waiting: deque[tuple[Group, FailingRunner]] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        self._pool.__exit__()

    def pick_device(self, name: str) -> str:
        """A device of this machine."""
        return str(pick_device(name))

    def made_with(self, device: str) -> dict[str, Any]:
        """Versions, and this machine."""
        return provenance(device)

    def has_room(self) -> bool:
        """Whether the last group has ended."""
        return not self._waiting

    def is_busy(self) -> bool:
        """Whether a group waits to be run."""
        return bool(self._waiting)

    def start(self, group: Group, runner: FailingRunner) -> None:
        """Take a group; it runs when :meth:`ended` is called."""
        self._waiting.append((group, runner))

    def ended(self) -> Iterator[Ending]:
        """Run the oldest group, and yield its units as they end."""
        group, runner = self._waiting.popleft()
        units = [(group.variant, split) for split in group.units]
        for (_, split), outcome in run_group(group.task, runner, units, self._pool):
            yield group, split, outcome
