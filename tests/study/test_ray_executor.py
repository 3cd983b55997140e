"""A real Ray cluster of several nodes, one of which is killed while it trains."""

import time
from pathlib import Path

import pytest

from ecg_gnn.cli.fit_verb import cluster_for
from ecg_gnn.inference import fit_best
from ecg_gnn.study import Store, run_study
from ecg_gnn.study.ray_executor import RayExecutor
from ecg_gnn.study.search import Search
from ecg_gnn.tabular import load_named_graph
from small_runs import threads
from small_studies import numbers, small_recipe

pytest.importorskip("ray")

pytestmark = pytest.mark.slow
# Plain kernels: nodes have no others to wait for.
RECIPE = small_recipe(
    models=["gcn"],
    variants=["baseline", "mlp"],
    splits=[0, 1, 2, 3, 4],
    settings={"train.steps": 60, "engine": "reference"},
)
NUM_UNITS = 10
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A head that trains nothing, and two nodes with a core each."""
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:  # what nodes inherit
        patched.setenv("ECG_CACHE", str(tmp_path_factory.mktemp("cache")))
        patched.setenv("OMP_NUM_THREADS", "1")
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patched.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        head = SMALL | {"num_cpus": 0, "include_dashboard": False}
        made = Cluster(initialize_head=True, head_node_args=head)
        for _ in range(2):
            made.add_node(**SMALL)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


def is_training(node):
    """Whether a worker of a node is busy at this moment."""
    (raylet,) = node.all_processes["raylet"]
    pid = raylet.process.pid
    try:
        workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        commands = [Path(f"/proc/{worker}/cmdline").read_bytes() for worker in workers]
    except OSError:  # one ended while we looked
        return False
    return any(command.startswith(b"ray::run_on_node") for command in commands)


def kill_a_busy_node(cluster):
    """Kill one that is training: there is one, or soon will be."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for node in filter(is_training, cluster.worker_nodes):
            cluster.remove_node(node, allow_graceful=False)
            return
        time.sleep(0.005)
    pytest.fail("nobody trains")


def test_a_node_that_is_killed_costs_what_it_was_doing(cluster, tmp_path):
    ended = []

    def listen(line):
        if line.startswith("["):
            ended.append(line.partition(":")[0])
            if len(ended) == 1:
                kill_a_busy_node(cluster)

    report = run_study(
        RECIPE,
        tmp_path / "s.sqlite",
        executor=RayExecutor(),
        say=listen,
    )
    assert len(cluster.worker_nodes) == 1
    assert len(ended) == len(set(ended)) == report.counts.done == NUM_UNITS
    with threads(1):
        run_study(RECIPE, tmp_path / "alone.sqlite")
    with Store.open(tmp_path / "alone.sqlite") as store:
        expected = numbers(store)
    with Store.open(tmp_path / "s.sqlite") as store:
        assert numbers(store) == expected
        made = [record.result.provenance for record in store.records()]
    assert {row["threads"] for row in made} == {1}
    assert all(row["node"] for row in made)


def test_a_search_on_the_cluster(cluster, tmp_path):
    pytest.importorskip("optuna")
    settings = {"engine": "reference"}
    grid = {"train.lr": {"low": 1e-4, "high": 1e-1, "log": True}}
    variants = ["baseline", "identity"]
    report = run_study(
        small_recipe(models=["gcn"], variants=variants, grid=grid, settings=settings),
        tmp_path / "s.sqlite",
        search=Search(trials=2),
        executor=RayExecutor(),
    )
    assert report.counts.done == report.ran == 8
    assert [cell.done for cell in report.searched] == [2, 2]


def test_candidates_of_a_fit_on_the_cluster(cluster, tmp_path):
    graph = load_named_graph("csbm:nodes=80")
    with cluster_for("ray", None, 2) as where:
        model = fit_best(graph, tmp_path / "model", budget=4, **where)
    assert where["workers"] >= 1  # another test may have cost the cluster a node
    assert model.metrics["leaderboard"]
    with RayExecutor() as executor, pytest.raises(InterruptedError):
        executor.call(lambda: time.sleep(60), unless=lambda: True)
