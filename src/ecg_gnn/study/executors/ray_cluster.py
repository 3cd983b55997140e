"""Jobs on a Ray cluster: nodes train, and the process that owns the store writes it."""

import importlib.util
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType, TracebackType
from typing import Any, Self

from ecg_gnn.study.executors.on_node import NodeRunner, run_on_node
from ecg_gnn.study.executors.protocol import Ending, Job
from ecg_gnn.study.outcomes import Failed, Outcome
from ecg_gnn.study.provenance import provenance
from ecg_gnn.study.units import batched, most_together
from ecg_gnn.system.checks import (
    InputError,
    MissingExtraError,
    check_choice,
    check_in_range,
)

_LOOK_SECONDS = 5.0
_PATIENCE_SECONDS = 300.0
_CONNECT_SECONDS = 10.0
# A node that goes away is no unit's fault, a worker that dies may well be.
_MOST_LOST_NODES = 20
_MOST_LOST_WORKERS = 3


@dataclass(frozen=True)
class _Task:
    """Some splits of a job as one task of Ray's, and how often it was lost."""

    job: Job
    splits: tuple[int, ...]
    lost_nodes: int = 0
    lost_workers: int = 0


class RayExecutor:
    """See :class:`ecg_gnn.study.executors.Executor`.

    Every node needs the same ecg-gnn; graphs travel to it, and embeddings are kept in
    its own cache. What a lost node or worker was doing is done again.

    Args:
        jobs: Trainings at a time on a cluster that is started here.
        address: Of a running cluster instead, as ``ray start`` shows it, or ``auto``.
        on_lost: Told in words whenever something was lost.
    """

    def __init__(
        self,
        *,
        jobs: int = 1,
        address: str | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        check_in_range("jobs", jobs, 1, None)
        if importlib.util.find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "--engine ray")
        self._jobs, self._address, self._on_lost = jobs, address, on_lost
        self._tasks: dict[Any, _Task] = {}
        self._graphs: dict[tuple[str, str, int | None], Any] = {}
        self._on_gpus = self._is_ours = False
        self._seen_alive = 0.0

    def __enter__(self) -> Self:
        ray = _ray()
        if not ray.is_initialized():
            _connect(ray, self._address, self._jobs)
            self._is_ours = True
        self._train = ray.remote(run_on_node)
        self._seen_alive = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ray = _ray()
        for reference in self._tasks:
            ray.cancel(reference, force=True)
        self._tasks.clear()
        self._graphs.clear()
        if self._is_ours:
            ray.shutdown()

    def pick_device(self, name: str) -> str:
        """Which of the cluster's devices is meant; Ray gives out the single ones."""
        check_choice("device", name, ["auto", "cpu", "cuda"])
        has_gpus = _ray().cluster_resources().get("GPU", 0) >= 1
        if name == "cuda" and not has_gpus:
            raise InputError(
                "'device' must be one of ['auto', 'cpu'] here: no node of the cluster "
                "has a GPU (got 'cuda')"
            )
        self._on_gpus = has_gpus and name != "cpu"
        return "cuda" if self._on_gpus else "cpu"

    def made_with(self, device: str) -> dict[str, Any]:
        """What is known here; nodes put their own versions and machine over it."""
        return {**provenance("cpu"), "device": device, "device_name": None}

    def has_room(self) -> bool:
        """Whether a node would soon have nothing to do, or a new one was awaited."""
        return len(self._tasks) < 2 * max(1, self._places())

    def is_busy(self) -> bool:
        """Whether tasks have not ended."""
        return bool(self._tasks)

    def _places(self) -> int:
        """Trainings that all nodes together can do at a time."""
        unit = "GPU" if self._on_gpus else "CPU"
        return int(_ray().cluster_resources().get(unit, 0))

    def start(self, job: Job) -> None:
        """Make tasks of a job: on GPUs several splits each, elsewhere one."""
        most = most_together(job.runner.config)
        for splits in batched(job.piece.splits, most):
            self._submit(_Task(job, splits))

    def _submit(self, task: _Task) -> None:
        group = task.job.piece.group
        # Ray would retry a task that runs out of memory without end: not its business.
        options = {"num_cpus": 1, "num_gpus": int(self._on_gpus), "max_retries": 0}
        reference = self._train.options(**options).remote(
            self._graph(task.job),
            NodeRunner.of(task.job.runner),
            group.task,
            task.job.units(task.splits),
        )
        self._tasks[reference] = task

    def _graph(self, job: Job) -> Any:
        """A graph in Ray's object store, put there once."""
        graph, config = job.runner.dataset, job.runner.config
        key = graph.name, graph.sha256, config.seed if config.random_splits else None
        if key not in self._graphs:
            self._graphs[key] = _ray().put(graph)
        return self._graphs[key]

    def ended(self) -> Iterator[Ending]:
        """Wait a while for tasks; what was lost is started again."""
        ready, _ = _ray().wait(list(self._tasks), timeout=_LOOK_SECONDS)
        self._check_alive(bool(ready))
        for reference in ready:
            task = self._tasks.pop(reference)
            for split, outcome in self._outcomes(task, reference):
                yield task.job, split, outcome

    def _check_alive(self, something_ended: bool) -> None:
        """Wait for nodes to come back, but not for ever."""
        now = time.monotonic()
        if something_ended or self._places():
            self._seen_alive = now
        elif now - self._seen_alive > _PATIENCE_SECONDS:
            raise ConnectionError(
                "the Ray cluster has had no node to train on for "
                f"{_PATIENCE_SECONDS:.0f} s: what is finished is kept, the same "
                "command goes on"
            )

    def _outcomes(self, task: _Task, reference: Any) -> Sequence[tuple[int, Outcome]]:
        ray = _ray()
        try:
            found: list[tuple[int, Outcome]] = ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            # Whatever happens to a unit is an outcome: this is the node's own trouble.
            raise InputError(
                "every node of the cluster must have the same ecg-gnn and its "
                f"dependencies (one answered: {str(error.cause)[:500]})"
            ) from None
        except (
            ray.exceptions.WorkerCrashedError,
            ray.exceptions.OutOfMemoryError,
        ) as error:
            return self._after_lost_worker(task, error)
        except ray.exceptions.RayError as error:
            return self._after_lost_node(task, error)
        return found

    def _after_lost_worker(
        self, task: _Task, error: Exception
    ) -> Sequence[tuple[int, Outcome]]:
        """Try again, one split at a time so that only a culprit is given up."""
        if len(task.splits) > 1:
            again = [_Task(task.job, (split,)) for split in task.splits]
        else:
            again = [replace(task, lost_workers=task.lost_workers + 1)]
        if again[0].lost_workers >= _MOST_LOST_WORKERS:
            text = f"its worker was killed {_MOST_LOST_WORKERS} times, most often that "
            text += f"is for want of memory ({_first_line(error)})"
            return [(split, Failed("out_of_memory", text)) for split in task.splits]
        self._again(again, "a worker was killed, most often for its memory")
        return []

    def _after_lost_node(
        self, task: _Task, error: Exception
    ) -> Sequence[tuple[int, Outcome]]:
        """Try again on another node."""
        if task.lost_nodes + 1 >= _MOST_LOST_NODES:
            text = f"its node was lost {_MOST_LOST_NODES} times ({_first_line(error)})"
            return [(split, Failed("error", text)) for split in task.splits]
        again = replace(task, lost_nodes=task.lost_nodes + 1)
        self._again([again], "a node was lost")
        return []

    def _again(self, tasks: Sequence[_Task], what: str) -> None:
        for task in tasks:
            self._submit(task)
        if self._on_lost is not None:
            splits = [str(split) for task in tasks for split in task.splits]
            at = tasks[0].job.piece.group.configuration
            self._on_lost(
                f"{what}: {at.dataset} {at.model} {at.embedding or at.variant} split "
                f"{', '.join(splits)} is run again"
            )


def _ray() -> ModuleType:
    import ray

    return ray


def _connect(ray: ModuleType, address: str | None, jobs: int) -> None:
    """Join a running cluster, or start one on this machine."""
    # Nobody was asked whether this may be told to Ray's makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # What Ray announces to become the default: CPU tasks may see GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        ray.init(address="local", num_cpus=jobs, include_dashboard=False, **quiet)
        return
    try:
        _check_listening(address)
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise InputError(
            "'address' must be HOST:PORT of a running Ray cluster, or auto "
            f"(got {address!r}: {_first_line(error)})"
        ) from None


def _check_listening(address: str) -> None:
    """Fail where nobody answers: Ray itself would try for hours."""
    if address != "auto":
        host, _, port = address.removeprefix("ray://").rpartition(":")
        socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
