"""Units on a Ray cluster: nodes train, the process that owns the store writes it."""

import importlib.util
import logging
import os
import platform
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any, Self

import torch

from ecg_gnn._version import __version__
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.reading import first_line
from ecg_gnn.study.executors import Executor, Outcome
from ecg_gnn.study.groups import Group
from ecg_gnn.study.records import provenance
from ecg_gnn.study.store import Failed
from ecg_gnn.study.units import UnitRunner, batched, most_together
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.system.files import cache_folder

_CONNECT_SECONDS = 10.0
_RETRIES = 3  # where a worker or its node is lost
# Read when Ray is imported. No usage reports to Ray's makers: the user was not asked.
# CPU tasks see no GPUs (Ray's future default); tasks that run out of memory, which Ray
# would repeat without end, have as many tries as others.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_task_oom_retries": str(_RETRIES),
}


class RayExecutor(Executor):
    """Runs units on the nodes of a Ray cluster.

    Every node needs the same ecg-gnn; it is sent the graphs and keeps embeddings in its
    own cache. What a lost node or worker was doing is repeated by Ray.

    Args:
        jobs: Parallel trainings on a cluster that is started here.
        address: Of a running cluster instead, as ``ray start`` shows it, or ``auto``.
    """

    def __init__(self, *, jobs: int = 1, address: str | None = None) -> None:
        super().__init__(jobs)
        if importlib.util.find_spec("ray") is None:
            raise MissingExtraError("ray", "ray", "--engine ray")
        self._address = address
        self._tasks: dict[Any, tuple[Group, UnitRunner]] = {}
        self._graphs: dict[tuple[str, str, int | None], Any] = {}
        self._on_gpus = self._is_ours = False

    def __enter__(self) -> Self:
        ray = _ray()
        if not ray.is_initialized():
            _connect(ray, self._address, self._pool.jobs)
            self._is_ours = True
        return self

    def __exit__(self, *_: object) -> None:
        for reference in self._tasks:
            _ray().cancel(reference, force=True)
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
        once = {"num_cpus": 1, "max_retries": _RETRIES}
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

    def run(
        self, groups: Iterator[tuple[Group, UnitRunner]]
    ) -> Iterator[tuple[Group, int, Outcome]]:
        """Keep every node busy, those awaited too."""
        while True:
            # Twice as many as run, so that no node has to wait for its next one.
            while len(self._tasks) < 2 * max(1, self.places()):
                if (taken := next(groups, None)) is None:
                    break
                group, runner = taken
                # Several splits each on GPUs, one elsewhere.
                most = most_together(runner.config)
                for units in batched(group.units.values(), most):
                    self._submit(group.only(units), runner)
            if not self._tasks:
                return
            (reference,), _ = _ray().wait(list(self._tasks))
            group, runner = self._tasks.pop(reference)
            for split, outcome in self._outcomes(reference, group, runner):
                yield group, split, outcome

    def _submit(self, group: Group, runner: UnitRunner) -> None:
        ray, graph, config = _ray(), group.dataset, group.config
        drawn = config.random_splits or config.label_rate > 0
        key = graph.name, graph.sha256, config.seed if drawn else None
        if key not in self._graphs:  # put into Ray's object store once
            self._graphs[key] = ray.put(graph)
        options = {"num_cpus": 1, "num_gpus": int(self._on_gpus)}
        on_node = ray.remote(run_on_node).options(max_retries=_RETRIES, **options)
        # Graphs travel once; caches and checkpoints are of this machine.
        unsent: dict[str, Any] = {"dataset": None}
        bare = replace(group, **unsent)
        unsent |= dict.fromkeys(["cache", "checkpoints", "on_progress"])
        sent = self._graphs[key], bare, replace(runner, **unsent)
        reference = on_node.remote(*sent, config.numerics)
        self._tasks[reference] = group, runner

    def _outcomes(
        self, reference: Any, group: Group, runner: UnitRunner
    ) -> list[tuple[int, Outcome]]:
        """How the splits of a task ended; none if they are run again."""
        errors = _ray().exceptions
        try:
            outcomes: list[tuple[int, Outcome]] = _ray().get(reference)
            return outcomes
        except errors.RayTaskError as error:
            # A unit's own failure is an outcome: this is a problem of the node.
            raise InputError(
                "every node of the cluster must have the same ecg-gnn and its "
                f"dependencies (one answered: {str(error.cause)[:500]})"
            ) from None
        except errors.RayError as error:
            if len(group.units) == 1:
                killed = errors.WorkerCrashedError, errors.OutOfMemoryError
                kind = "out_of_memory" if isinstance(error, killed) else "error"
                text = f"its worker or node was lost {_RETRIES + 1} times"
                failed = Failed(kind, f"{text} ({first_line(error)})")
                return [(split, failed) for split in group.units]
        for unit in group.units.values():  # alone: only the failing one is given up
            self._submit(group.only([unit]), runner)
        return []


def run_on_node(
    graph: GraphDataset, group: Group, runner: UnitRunner, numerics: int
) -> list[tuple[int, Outcome]]:
    """Run a group's units on a node; how each of their splits ended."""
    config, node = runner.config, platform.node()
    if numerics != config.numerics:
        raise RuntimeError(
            f"ecg-gnn {__version__} of the node {node} has numerics "
            f"{config.numerics}, the study's {numerics}"
        )
    torch.set_num_threads(1)  # a node has as many tasks as cores
    made_with = runner.made_with | provenance(config.device) | {"node": node}
    cache = EmbeddingCache(cache_folder("embeddings"))
    own = replace(runner, dataset=graph, cache=cache, made_with=made_with)
    ending = Executor().run(iter([(group, own)]))
    return [(split, outcome) for _, split, outcome in ending]


def _ray() -> ModuleType:
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    return ray


def _connect(ray: ModuleType, address: str | None, jobs: int) -> None:
    """Join a running cluster, or start one on this machine."""
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
