"""Disks that are full: one line, what was there stays, and the same command goes on.

Files are limited by the system itself, as a full disk would: every write beyond so many
bytes fails, whoever writes, in Python or below it.
"""

import contextlib
import errno
import json
import os
import resource
import subprocess
import sys
from unittest import mock

import pytest
import yaml

from ecg_gnn.study.store import Store, writer
from ecg_gnn.study.store.reader import owner_of
from malformed import folders, stores, tables
from malformed.runner import MINE, built_once, files_in, put, run
from small_runs import BOARD, SMALL
from small_studies import SMALL_RECIPE, numbers

IMPORT = (*folders.IMPORT[:-1], "again")
FIT = (*folders.FIT[:4], "fitted", *folders.FIT[5:])
PREDICT = folders.EVERY
VERBS = {
    "import": IMPORT,
    "fit": FIT,
    "predict": PREDICT,
    "predict parquet": (*PREDICT[:-1], "out.parquet"),
    "explain": (*folders.EXPLAIN, "--out", "out.png"),
    "data get": ("data", "get", BOARD, "--out", "out.npz"),
    "run": ("run", "--dataset", BOARD, *SMALL, "--out", "ran"),
    "study run": ("study", "run", "recipe.yaml", "--store", "new.sqlite"),
    "study table": (*stores.TABLES[0], "--out", "out.json"),
    "study figure": (
        "study",
        "figure",
        "effects",
        "--store",
        "s.sqlite",
        "--out",
        "out.svg",
    ),
    "study report": (*stores.REPORT[:-1], "out.html"),
    "study export": ("study", "export", "--store", "s.sqlite", "--out", "out.jsonl"),
}
OUTPUTS = [command[-1] for command in VERBS.values() if command[-1].startswith("out.")]
# What is begun and goes on later.
UNFINISHED = {"fit": ".fitted.fit/", "run": "ran/", "study run": "new.sqlite"}


@pytest.fixture(scope="module")
def valid(tmp_path_factory, built_kernels):
    """Files of everything that commands read."""
    folder, cache = (tmp_path_factory.mktemp(name) for name in ("valid", "cache"))
    (cache / "kernels").symlink_to(built_kernels)
    recipe = SMALL_RECIPE | {"models": ["gcn"], "splits": [0], "variants": ["baseline"]}
    put(folder / "recipe.yaml", yaml.safe_dump(recipe).encode())
    for name, content in (tables.VALID | folders.NEW).items():
        put(folder / name, content)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ECG_CACHE", str(cache))
        stores.make_store(folder / "s.sqlite")
        for command in (folders.IMPORT, folders.FIT):
            assert run(command)[0] == 0
    return {path.relative_to(folder): path.read_bytes() for path in files_in(folder)}


@pytest.fixture
def scene(valid, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in valid.items():
        put(tmp_path / name, content)
    for name in OUTPUTS:
        put(tmp_path / name, MINE)
    with built_once():
        yield tmp_path


@contextlib.contextmanager
def files_of_at_most(size):
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def fail_and_go_on(folder, verb, context):
    """A command fails in one line and leaves nothing; afterwards it succeeds."""
    before = {path: path.read_bytes() for path in files_in(folder)}
    with context:
        status, _, err = run(VERBS[verb])
    assert status in (1, 2), (status, err)
    lines = err.splitlines()
    assert lines[-1].startswith("error: ")
    others = [line for line in lines[:-1] if not line.startswith(("warning: ", "["))]
    assert not others, err
    after = {path: path.read_bytes() for path in files_in(folder)}
    assert {path: after[path] for path in before} == before, "files were changed"
    left = [str(path.relative_to(folder)) for path in after if path not in before]
    begun = UNFINISHED.get(verb, "nothing")
    assert all(name.startswith(begun) for name in left), left
    assert not [name for name in left if "/." in name], f"temporary files: {left}"
    status, _, err = run(VERBS[verb])
    assert status == 0, err
    return lines[-1]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("size", [0, 500])
def test_files_that_cannot_grow(scene, verb, size):
    said = fail_and_go_on(scene, verb, files_of_at_most(size))
    reasons = ("File too large", "disk", "Error", "written")
    assert any(reason in said for reason in reasons), said


@pytest.mark.parametrize("verb", [name for name in VERBS if name != "study run"])
def test_a_disk_that_is_found_full_at_last(scene, verb):
    """Some file systems say so only when a file is brought to the disk."""
    said = fail_and_go_on(scene, verb, mock.patch.object(os, "fsync", no_space))
    assert "No space left on device" in said


def no_space(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_output_that_goes_nowhere():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ecg_gnn", "data", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_records_of_before_outlive_a_full_disk(scene):
    first = ("study", "run", "recipe.yaml", "--store", "new.sqlite")
    more = (*first, "--splits", "0-2")
    assert run(first)[0] == 0
    with Store.open(scene / "new.sqlite") as store:
        before = numbers(store)
    dead = json.dumps(json.loads(owner_of(os.getpid())) | {"pid": 2**22 + 1})
    with (
        mock.patch.object(writer, "owner_of", return_value=dead),
        files_of_at_most(33_000),  # just room for what SQLite shares in memory
    ):
        status, _, err = run(more)
    assert status == 2
    assert "new.sqlite' cannot be written" in err.splitlines()[-1]
    with Store.open(scene / "new.sqlite") as store:
        assert before.items() <= numbers(store).items()
    assert run(more)[0] == 0
    with Store.open(scene / "new.sqlite") as store:
        after = numbers(store)
    assert before.items() < after.items()
    assert len(after) == 3
