"""What is done when workers and nodes are lost, without losing any."""

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest

from ecg_gnn.config import RunConfig
from ecg_gnn.study import Store, ray_executor, run_study, units, workers
from ecg_gnn.study.executors import Executor
from ecg_gnn.study.ray_executor import RayExecutor, run_on_node
from ecg_gnn.system.checks import InputError
from small_studies import small_recipe

RECIPE = small_recipe(models=["gcn"], variants=["baseline", "identity"])


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause):
        super().__init__(str(cause))
        self.cause = cause


class WorkerCrashedError(RayError):
    pass


class OutOfMemoryError(RayError):
    pass


class NodeDiedError(RayError):
    pass


@dataclass(eq=False)
class SimpleReference:
    function: Callable
    arguments: tuple


class FakeRay:
    """A cluster in this process: tasks run when their results are asked for.

    Args:
        error: From a task's splits and how often these were tried to what happens to
            it instead of a result; None lets it run.
        resources: What all nodes have together.
    """

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        WorkerCrashedError=WorkerCrashedError,
        OutOfMemoryError=OutOfMemoryError,
    )

    def __init__(self, error=lambda splits, tries: None, resources=None):
        self.error, self.resources = error, resources or {"CPU": 2.0}
        self.tries, self.puts, self.cancelled, self.most = {}, [], [], 0

    def is_initialized(self):
        return True

    def cluster_resources(self):
        return self.resources

    def put(self, thing):
        self.puts.append(thing)
        return thing

    def remote(self, function):
        def submit(*arguments):
            return SimpleReference(function, arguments)

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=submit))

    def wait(self, tasks):
        self.most = max(self.most, len(tasks))
        return tasks[:1], tasks[1:]

    def get(self, task):
        function, arguments = task.function, task.arguments
        splits, variant = tuple(arguments[1].units), arguments[1].variant.name
        self.tries[variant, splits] = self.tries.get((variant, splits), 0) + 1
        if (error := self.error(splits, self.tries[variant, splits])) is not None:
            raise error
        return function(*arguments)

    def cancel(self, task, force):
        self.cancelled.append(task)


@pytest.fixture
def run_with(monkeypatch, tmp_path):
    """Run the study on a cluster that does not exist."""
    monkeypatch.setattr(ray_executor.importlib.util, "find_spec", lambda name: name)

    def call(ray, **options):
        monkeypatch.setattr(ray_executor, "_ray", lambda: ray)
        path = tmp_path / "s.sqlite"
        report = run_study(RECIPE, path, executor=RayExecutor(), **options)
        with Store.open(path) as store:
            return report, store.failures()

    call.path = tmp_path / "s.sqlite"
    return call


def test_everything_runs_and_the_graph_travels_once(run_with):
    ray = FakeRay()
    report, failures = run_with(ray)
    assert (report.counts.done, failures) == (4, [])
    assert len(ray.puts) == 1
    assert ray.most <= 5  # two places, as many in waiting, and a group begun
    assert ray.cancelled == []


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (WorkerCrashedError, "out_of_memory"),
        (OutOfMemoryError, "out_of_memory"),
        (NodeDiedError, "error"),
    ],
)
def test_a_unit_that_ray_gives_up_has_failed(run_with, error, kind):
    ray = FakeRay(
        lambda splits, tries: error("gone\nfor good") if 1 in splits else None
    )
    report, failures = run_with(ray)
    assert (report.counts.done, report.counts.failed) == (2, 2)
    assert {(f.split, f.kind) for f in failures} == {(1, kind)}
    assert "its worker or node was lost 4 times (gone" in failures[0].error
    assert set(ray.tries.values()) == {1}  # Ray itself has tried again


def test_splits_whose_common_worker_was_killed_are_tried_alone(run_with, monkeypatch):
    monkeypatch.setattr(ray_executor, "most_together", lambda device: 10)
    ray = FakeRay(lambda splits, tries: OutOfMemoryError() if len(splits) > 1 else None)
    report, _ = run_with(ray)
    assert report.counts.done == 4
    assert len(ray.tries) == 6


def test_what_still_runs_is_cancelled_with_the_study(run_with):
    ray = FakeRay()

    def stop(line):
        if line.startswith("[1/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_with(ray, say=stop)
    assert len(ray.cancelled) == 3
    with Store.open(run_with.path) as store:
        assert sum(row.running for row in store.progress()) == 0


def test_nodes_that_cannot_train_stop_the_study(run_with):
    ray = FakeRay(lambda splits, tries: RayTaskError(ImportError("no ecg_gnn")))
    with pytest.raises(InputError, match=r"every node .* the same .*no ecg_gnn"):
        run_with(ray)
    with Store.open(run_with.path) as store:
        assert store.failures() == []


@pytest.mark.parametrize("embedding", ["mlp", "bgrl"])
def test_a_node_with_other_numerics_refuses(embedding):
    config = RunConfig.of(embedding=embedding)
    older = config.numerics - 1  # of an embedder that moved alone, all others' own
    with pytest.raises(RuntimeError, match=rf"has numerics .* the study's {older}"):
        run_on_node(None, None, SimpleNamespace(config=config), numerics=older)


@pytest.mark.parametrize(
    ("device", "resources", "message"),
    [
        ("cuda", {"CPU": 2.0}, "no node of the cluster has a GPU"),
        ("cuda:1", {"CPU": 2.0, "GPU": 2.0}, "'device' must be one of"),
    ],
)
def test_devices_that_the_cluster_has_not(run_with, device, resources, message):
    with pytest.raises(InputError, match=message):
        run_with(FakeRay(resources=resources), device=device)
    assert not run_with.path.exists()


def test_gpus_of_others_can_be_planned_for(run_with, monkeypatch):
    """The process that owns the store may be on a machine without any."""
    seen = []

    def stop(graph, group, runner, numerics):
        seen.append((runner.config, list(group.units)))
        raise KeyboardInterrupt

    monkeypatch.setattr(units.torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(ray_executor, "run_on_node", stop)
    with pytest.raises(KeyboardInterrupt):
        run_with(FakeRay(resources={"CPU": 2.0, "GPU": 1.0}))
    ((config, splits),) = seen
    assert (config.device, config.train.precision, splits) == ("cuda", "tf32", [0, 1])


# --- Processes of this machine --------------------------------------------------------


class FragilePool:
    """Processes one of which is killed by the second split, alone or with others."""

    jobs = 2

    def __init__(self):
        self.tried = []

    def each(self, work, tasks):
        for variant, split in tasks:
            self.tried.append(split)
            if split == 1:
                raise workers.LostWorkerError("a training process was killed")
            yield (variant, split), work((variant, split))

    def close(self):
        pass


def test_a_killed_process_costs_only_the_unit_that_kills_it(tmp_path):
    recipe = small_recipe(models=["gcn"], variants=["baseline"], splits=[0, 1, 2])
    executor = Executor(jobs=2)
    executor._pool = FragilePool()
    report = run_study(recipe, tmp_path / "s.sqlite", executor=executor)
    assert executor._pool.tried == [0, 1, 1, 2]
    assert (report.counts.done, report.counts.failed) == (2, 1)
    with Store.open(tmp_path / "s.sqlite") as store:
        (failure,) = store.failures()
    assert (failure.split, failure.kind) == (1, "out_of_memory")
    assert "a training process was killed" in failure.error
