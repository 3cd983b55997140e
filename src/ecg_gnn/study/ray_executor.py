"""Units on a Ray cluster: nodes train, the process that owns the store writes it."""

import importlib.util
import logging
import os
import platform
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any, Self

import torch

from ecg_gnn._version import __version__
from ecg_gnn.config.identity import Purpose
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.reading import first_line
from ecg_gnn.study.executors import Ending, Executor, Outcome, Take, run_group
from ecg_gnn.study.groups import Group
from ecg_gnn.study.records import provenance
from ecg_gnn.study.store import Failed
from ecg_gnn.study.units import Unit, UnitRunner, batched, most_together
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.system.files import cache_folder

_WAIT_SECONDS = 5.0
_PATIENCE_SECONDS = 300.0
_CONNECT_SECONDS = 10.0
# Losing a node is not the fault of a unit; losing a worker may well be.
_MAX_LOST_NODES = 20
_MAX_LOST_WORKERS = 3


@dataclass(frozen=True)
class _Task:
    """Some splits of a group as one Ray task, and how often it was lost."""

    group: Group
    runner: UnitRunner
    splits: tuple[int, ...]
    lost_nodes: int = 0
    lost_workers: int = 0

    def __str__(self) -> str:
        at, splits = self.group.configuration, ", ".join(map(str, self.splits))
        return f"{at.dataset} {at.model} {at.embedding or at.variant} split {splits}"


class RayExecutor(Executor):
    """Runs units on the nodes of a Ray cluster.

    Every node needs the same ecg-gnn; it is sent the graphs and keeps embeddings in its
    own cache. What a lost node or worker was doing is repeated.

    Args:
        jobs: Parallel trainings on a cluster that is started here.
        address: Of a running cluster instead, as ``ray start`` shows it, or ``auto``.
        on_lost: Called with a sentence whenever something was lost.
    """

    def __init__(
        self,
        *,
        jobs: int = 1,
        address: str | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(jobs)
        if importlib.util.find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "--engine ray")
        self._address, self._on_lost = address, on_lost or (lambda _said: None)
        self._tasks: dict[Any, _Task] = {}
        self._graphs: dict[tuple[str, str, int | None], Any] = {}
        self._on_gpus = self._is_ours = False

    def __enter__(self) -> Self:
        ray = _ray()
        if not ray.is_initialized():
            _connect(ray, self._address, self._pool.jobs)
            self._is_ours = True
        self._train = ray.remote(run_on_node)
        self._seen_alive = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        for reference in self._tasks:
            _ray().cancel(reference, force=True)
        self._tasks.clear()
        self._graphs.clear()
        if self._is_ours:
            _ray().shutdown()

    def pick_device(self, name: str) -> str:
        """CPUs or GPUs of the cluster; Ray assigns single ones."""
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
        """What is known here; nodes replace it with their own versions and machine."""
        return {**provenance("cpu"), "device": device, "device_name": None}

    def call(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        unless: Callable[[], bool] = bool,
    ) -> Any:
        """Run a function of a module on some node; elsewhere if that node is lost.

        It is cancelled, and ``InterruptedError`` raised, as soon as ``unless`` says so.
        """
        ray = _ray()
        once = {"num_cpus": 1, "max_retries": _MAX_LOST_WORKERS}
        reference = ray.remote(function).options(**once).remote(*arguments)
        while not ray.wait([reference], timeout=0.5)[0]:
            if unless():
                ray.cancel(reference, force=True)
                raise InterruptedError("the task was cancelled")
        return ray.get(reference)

    def places(self) -> int:
        """How many trainings all nodes together can run in parallel."""
        unit = "GPU" if self._on_gpus else "CPU"
        return int(_ray().cluster_resources().get(unit, 0))

    def run(self, take: Take) -> Iterator[Ending]:
        """Keep every node busy, those awaited too; what was lost is started again."""
        while True:
            # Twice as many as run, so that no node has to wait for its next one.
            while len(self._tasks) < 2 * max(1, self.places()) and (taken := take()):
                group, runner = taken
                # Several splits each on GPUs, one elsewhere.
                for splits in batched(group.units, most_together(runner.config)):
                    self._submit(_Task(group, runner, splits))
            if not self._tasks:
                return
            for reference in self._wait():
                task = self._tasks.pop(reference)
                for split, outcome in self._outcomes(task, reference):
                    yield task.group, split, outcome

    def _submit(self, task: _Task) -> None:
        group, graph, config = task.group, task.runner.dataset, task.runner.config
        # Ray would retry a task that runs out of memory without end.
        options = {"num_cpus": 1, "num_gpus": int(self._on_gpus), "max_retries": 0}
        drawn = config.random_splits or config.label_rate > 0
        key = graph.name, graph.sha256, config.seed if drawn else None
        if key not in self._graphs:  # put into Ray's object store once
            self._graphs[key] = _ray().put(graph)
        names = ("config", "run_id", "made_with")
        reference = self._train.options(**options).remote(
            self._graphs[key],
            {name: getattr(task.runner, name) for name in names},
            group.task,
            [(group.variant, split) for split in task.splits],
            config.numerics,
        )
        self._tasks[reference] = task

    def _wait(self) -> list[Any]:
        """Tasks that ended in a while; nodes are waited for, but not forever."""
        ready: list[Any]
        ready, _ = _ray().wait(list(self._tasks), timeout=_WAIT_SECONDS)
        now = time.monotonic()
        if ready or self.places():
            self._seen_alive = now
        elif now - self._seen_alive > _PATIENCE_SECONDS:
            raise ConnectionError(
                "the Ray cluster has had no node to train on for "
                f"{_PATIENCE_SECONDS:.0f} s: finished units are kept, rerun the "
                "command to resume"
            )
        return ready

    def _outcomes(self, task: _Task, reference: Any) -> list[tuple[int, Outcome]]:
        """How a task's splits ended; none if they are run again."""
        ray = _ray()
        killed = ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError
        try:
            outcomes: list[tuple[int, Outcome]] = ray.get(reference)
            return outcomes
        except ray.exceptions.RayTaskError as error:
            # A unit's own failure is an outcome: this is a problem of the node.
            raise InputError(
                "every node of the cluster must have the same ecg-gnn and its "
                f"dependencies (one answered: {str(error.cause)[:500]})"
            ) from None
        except killed as error:
            what = "a worker was killed, most often for its memory"
            times, most = task.lost_workers + (len(task.splits) == 1), _MAX_LOST_WORKERS
            text = f"its worker was killed {most} times, most often for lack of memory"
            kind, said = "out_of_memory", first_line(error)
            # One split at a time, so that only the failing one is given up.
            alone = replace(task, lost_workers=times)
            again = [replace(alone, splits=(split,)) for split in task.splits]
        except ray.exceptions.RayError as error:
            times, most = task.lost_nodes + 1, _MAX_LOST_NODES
            what, text = "a node was lost", f"its node was lost {most} times"
            kind, said = "error", first_line(error)
            again = [replace(task, lost_nodes=times)]
        if times >= most:
            return [(s, Failed(kind, f"{text} ({said})")) for s in task.splits]
        for each in again:
            self._submit(each)
        self._on_lost(f"{what}: {task} is run again")
        return []


def run_on_node(
    graph: GraphDataset,
    settings: dict[str, Any],
    task: Purpose,
    units: Sequence[Unit],
    numerics: int,
) -> list[tuple[int, Outcome]]:
    """Run units of one variant on a node; how each of their splits ended."""
    config, node = settings["config"], platform.node()
    if numerics != config.numerics:
        raise RuntimeError(
            f"ecg-gnn {__version__} of the node {node} has numerics "
            f"{config.numerics}, the study's {numerics}"
        )
    torch.set_num_threads(1)  # a node has as many tasks as cores
    made_with = settings["made_with"] | _made_here(config.device) | {"node": node}
    own = {"cache": EmbeddingCache(cache_folder("embeddings")), "made_with": made_with}
    runner = UnitRunner(dataset=graph, **(settings | own))
    ending = run_group(task, runner, units, WorkerPool(1))
    return [(split, outcome) for (_, split), outcome in ending]


@cache
def _made_here(device: str) -> dict[str, Any]:
    """Versions and machine, which a worker asks for once."""
    return provenance(device)


def _ray() -> ModuleType:
    import ray

    return ray


def _connect(ray: ModuleType, address: str | None, jobs: int) -> None:
    """Join a running cluster, or start one on this machine."""
    # No usage reports to Ray's makers: the user was not asked.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's future default: CPU tasks may see GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        ray.init(address="local", num_cpus=jobs, include_dashboard=False, **quiet)
        return
    try:
        if address != "auto":  # Ray itself would wait for hours where nothing listens
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
        ray.init(address=address, **quiet)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        raise InputError(
            "'address' must be HOST:PORT of a running Ray cluster, or auto "
            f"(got {address!r}: {first_line(error)})"
        ) from None
