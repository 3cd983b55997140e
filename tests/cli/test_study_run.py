"""``ecg-gnn study run``: engines and searches, and what it says of mistakes."""

import importlib.util
import json
import sys

import pytest
import yaml

from ecg_gnn.study import executors
from ecg_gnn.study.executors import Executor
from small_studies import SMALL_RECIPE

STORE = ["--store", "s.sqlite"]
TPE = ["--search", "tpe", "--trials", "2"]


@pytest.fixture
def recipe(tmp_path):
    """Write a recipe with a grid, and give its path."""

    def write(**grid):
        values = SMALL_RECIPE | {"models": ["gcn"], "variants": ["mlp"], "grid": grid}
        path = tmp_path / "space.yaml"
        path.write_text(yaml.safe_dump(values))
        return path

    return write


def test_a_search_and_what_it_says(ecg_gnn, recipe):
    pytest.importorskip("optuna")
    path = recipe(**{"train.lr": {"low": "1e-3", "high": 0.1, "log": True}})
    status, out, err = ecg_gnn("study", "run", path, *STORE, *TPE)
    assert status == 0, err
    assert "ECG (mlp): trial 2 of 2 done after 2 splits, validation " in err
    first, second = out.splitlines()
    assert first == "space+tpe: 4 of 4 done, 4 of them now. Records: s.sqlite"
    assert "gcn mlp: 2 trials done, best train.lr=0.0" in second
    _, out, err = ecg_gnn("study", "run", path, *STORE, *TPE, "--json")
    report = json.loads(out)
    assert (report["ran"], report["searched"][0]["done"]) == (0, 2)
    assert ecg_gnn("study", "table", "results", *STORE)[0] == 0


def test_what_a_cluster_prints_is_no_result(ecg_gnn, recipe, monkeypatch):
    class Talkative(Executor):
        def run(self, groups):
            sys.stdout.write("a raylet said something\n")
            return super().run(groups)

    monkeypatch.setattr(executors, "Executor", Talkative)
    status, out, err = ecg_gnn(
        "study", "run", recipe(), *STORE, "--splits", "0", "--json"
    )
    assert (status, json.loads(out)["ran"]) == (0, 1)
    assert "a raylet said something" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "dask"], "'engine' must be one of ['local', 'ray'] (got 'dask')"),
        (["--address", "auto"], "'address' must be given with --engine ray"),
        (["--trials", "3"], "'search' must be tpe with --trials"),
        (["--prune"], "'search' must be tpe with --trials"),
        (["--search-seed", "2"], "'search' must be tpe with --trials"),
        (["--search", "tpe"], "'trials' must be given with --search tpe"),
        (["--search", "cma", "--trials", "3"], "'search' must be one of ['tpe']"),
        ([*TPE, "--trials", "0"], "'trials' must be given with --search tpe"),
        (["--jobs", "0"], "'jobs' must be in [1, inf) (got 0)"),
        ([], "'grid.train.lr' must be a list of values unless it is searched"),
    ],
)
def test_mistakes_are_one_line(refused, recipe, options, message):
    path = recipe(**{"train.lr": {"low": 1e-3, "high": 0.1}})
    assert message in refused("study", "run", path, *STORE, *options)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nowhere", "127.0.0.1:port"])
def test_a_cluster_that_is_not_there(refused, recipe, address):
    pytest.importorskip("ray")
    options = ["--engine", "ray", "--address", address]
    message = refused("study", "run", recipe(), *STORE, *options)
    assert "'address' must be HOST:PORT of a running Ray cluster, or auto" in message
    assert f"(got {address!r}: " in message


@pytest.mark.parametrize(
    ("package", "extra", "options"),
    [("ray", "ray", ["--engine", "ray"]), ("optuna", "sweep", TPE)],
)
def test_missing_packages_are_named(
    refused, recipe, monkeypatch, package, extra, options
):
    find = importlib.util.find_spec

    def without(name):
        return None if name == package else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    message = refused("study", "run", recipe(), *STORE, *options)
    assert f"pip install 'ecg-gnn[{extra}]'" in message
