"""The benchmark of all stages measures what the package computes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ecg_gnn.data import load_dataset
from ecg_gnn.pipeline import evolve
from ecg_gnn.pipeline.resolve import resolve
from small_runs import train_one

FOLDER = Path(__file__).parents[2] / "benchmarks" / "scale"
STAGES = ["generate", "embed", "kNN", "train", "infer", "metrics"]


@pytest.fixture(autouse=True)
def _on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in ("one_size", "stages", "figures", "plot"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("batch_size", [512, 0])
def test_a_size_goes_through_all_stages(batch_size):
    from one_size import Settings, measure_size

    row = measure_size(Settings(nodes=2000, batch_size=batch_size, knn="exact"))
    assert list(row["stages"]) == STAGES
    assert all(stage["seconds"] > 0 for stage in row["stages"].values())
    assert all(stage["peak_mb"] > 10 for stage in row["stages"].values())
    assert row["total_s"] == pytest.approx(
        sum(stage["seconds"] for stage in row["stages"].values())
    )
    assert 0.98 * 20_000 < row["edges"] <= 20_000
    assert row["evolved_edges"] == 10 * 2000
    assert row["epoch"] == ("2 batches" if batch_size else "1 full-batch step")
    assert row["test"] > 0.3  # of five classes


def test_stages_are_the_packages_own_calls():
    from one_size import Settings, infer, run_config, scores, train_epoch

    unresolved = run_config(Settings(nodes=1500, batch_size=256, knn="exact"))
    dataset = load_dataset(unresolved.dataset)
    config, split = resolve(unresolved, dataset), dataset.split(0)
    evolved = evolve("mlp", dataset, split, config)
    training = train_epoch(dataset, evolved, config)
    logits = infer(training)
    # One step more is the end of a training, which is evaluated.
    training.step()
    _, result = train_one(dataset, split, [evolved], config)
    assert training.state.losses.tolist() == result.losses
    assert scores(infer(training), dataset) == pytest.approx((result.val, result.test))
    training.network.eval()
    with torch.no_grad():
        whole = training.network(dataset.x, training.task.graphs)
    assert torch.allclose(infer(training), whole, atol=1e-5)
    assert not torch.allclose(logits, whole, atol=1e-5)


def test_the_embedding_and_its_graph_are_those_of_a_run():
    from one_size import Clock, Settings, _embed_and_evolve, run_config

    unresolved = run_config(Settings(nodes=1000, knn="exact"))
    dataset = load_dataset(unresolved.dataset)
    config = resolve(unresolved, dataset)
    clock = Clock(torch.device("cpu"))
    graph = _embed_and_evolve(dataset, config, clock)
    direct = evolve("mlp", dataset, dataset.split(0), config)
    assert torch.equal(graph.edge_index, direct.edge_index)
    assert list(clock.stages) == ["embed", "kNN"]


def row(nodes, seconds, peak_mb):
    stage = {"seconds": seconds, "peak_mb": peak_mb}
    return {"nodes": nodes, "stages": dict.fromkeys(STAGES, stage)}


def test_slopes_are_exponents():
    from figures import slope

    rows = [row(n, 1e-9 * n**1.5, 50.0) for n in (10_000, 100_000, 1_000_000)]
    assert slope(rows, "kNN", "seconds") == pytest.approx(1.5)
    assert slope(rows, "kNN", "peak_mb") == pytest.approx(0.0)
    assert slope(rows[:1], "kNN", "seconds") is None


def test_slopes_leave_out_sizes_below_a_decade_of_interest():
    from figures import slope

    fixed = [row(1_000, 1.0, 1.0), row(100_000, 1.0, 1.0), row(1_000_000, 10.0, 1.0)]
    assert slope(fixed, "kNN", "seconds", least=100_000) == pytest.approx(1.0)


def test_sizes_are_added_to_what_a_file_has(tmp_path, monkeypatch):
    import stages

    path = tmp_path / "scale.json"
    arguments = ["stages.py", "--nodes", "60", "--json", str(path), "--knn", "exact"]
    for nodes in ("80", "60"):
        monkeypatch.setattr(sys, "argv", [*arguments[:2], nodes, *arguments[3:]])
        monkeypatch.setattr(
            stages, "measure_apart", lambda nodes, *_: row(nodes, 1.0, 1.0)
        )
        monkeypatch.setattr(stages, "describe", lambda _row: None)
        stages.main()
    record = json.loads(path.read_text(encoding="utf-8"))
    assert [each["nodes"] for each in record["rows"]] == [60, 80]
    assert record["versions"]["torch"]


def test_larger_graphs_follow_the_slopes():
    from figures import reach, tables

    rows = [row(n, 1e-9 * n**1.5, n / 2**10) for n in (100_000, 1_000_000)]
    for each in rows:
        each |= {"total_s": 1.0, "epoch": "3 batches", "knn_recall": 0.98}
        for stage in STAGES:
            each["stages"][stage]["cpu_s"] = each["stages"][stage]["seconds"]
    lines = reach({"rows": rows}, [10**8]).splitlines()
    assert lines[2] == "| generate, h (power 1.00) | 0.028 |"  # 1 s, 100 times
    assert lines[4] == "| kNN, h (power 1.50) | 0.28 |"  # 1 s, 1000 times
    rows[-1]["knn_recall"] = None  # exact: all pairs, whatever small sizes say
    lines = reach({"rows": rows}, [10**8]).splitlines()
    assert lines[4] == "| kNN, h (power 2.00) | 2.8 |"
    assert lines[-1] == "| peak GiB (1,024 bytes per node) | 95 |"
    assert "| kNN | 0.032 (0.032) | 1 (1) | 1.50 |" in tables({"rows": rows})


def test_the_pages_are_what_the_records_say():
    command = [sys.executable, str(FOLDER / "plot.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
