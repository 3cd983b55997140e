"""Studies that are killed lose nothing; two on one store do nothing twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ecg_gnn.study import Store, run_study
from killed_studies import NUM_UNITS, RECIPE
from small_runs import threads
from small_studies import numbers

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def scene(tmp_path_factory, built_kernels):
    """What killed_studies.py did and left; one process does it all."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "cache").mkdir()
    (folder / "cache/kernels").symlink_to(built_kernels)
    paths = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, str(TESTS / "killed_studies.py"), str(folder)],
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        | {"ECG_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


@pytest.fixture(scope="module")
def uninterrupted(scene):
    """The same study, left alone."""
    path = scene[0] / "whole.sqlite"
    with threads(1):
        report = run_study(RECIPE, path)
    assert report.ran == NUM_UNITS
    with Store.open(path) as store:
        return numbers(store)


def test_killed_three_times_and_resumed(scene, uninterrupted):
    folder, found = scene
    first, second, third = found["killed"]
    assert 0 < first < second < third
    path = folder / "killed.sqlite"
    with Store.open(path) as store:
        left = numbers(store)
    with threads(1):
        report = run_study(RECIPE, path)
    assert report.ran == NUM_UNITS - third
    with Store.open(path) as store:
        assert numbers(store) == uninterrupted
        assert left.items() <= uninterrupted.items()


def test_two_processes_share_the_work(scene, uninterrupted):
    folder, found = scene
    assert found["at_once"]["statuses"] == [0, 0]
    assert sum(found["at_once"]["ran"]) == NUM_UNITS
    with Store.open(folder / "twice.sqlite") as store:
        assert numbers(store) == uninterrupted


def test_workers_end_with_their_parent(scene):
    assert scene[1]["worker_ended"]
