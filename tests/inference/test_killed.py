"""A fit that is killed at any moment resumes, and ends as if nothing had happened.

The test starts this file as a script, whose children are forked, so that only one
process has to load everything. It computes nothing before: threads do not survive a
fork.
"""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from csv_graphs import write_stranger
from ecg_gnn.inference import best_fit, fitting
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.pipeline import classification
from ecg_gnn.tabular import ImportOptions, import_files, load_named_graph
from killed_studies import fork, wait_until

TESTS = Path(__file__).parents[1]
OPTIONS = dict(steps=200, hidden=16, layers=1, k=4, device="cpu")
SAFELY = classification.loop_settings


def often(*arguments):
    """Checkpoints several times in a training that takes a second."""
    return dataclasses.replace(SAFELY(*arguments), checkpoint_seconds=0.05)


def fit(folder, out):
    classification.loop_settings = often
    pair = (folder / "nodes.csv", folder / "edges.csv")
    fit_model(import_files(*pair, ImportOptions(label="kind")), out, **OPTIONS)


def kill_three_times(folder, out):
    """Kill a fit in each of its three trainings; then let it be.

    Returns how many trainings were finished after every kill.
    """
    work, after = out.parent / f".{out.name}.fit", []
    for finished in range(3):
        pid = fork(lambda: fit(folder, out))
        wait_until(lambda least=finished: is_training(work, least))
        time.sleep(random.uniform(0, 0.1))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        after.append(len(stages(work)))
    pid = fork(lambda: fit(folder, out))
    return {"after": after, "status": os.waitpid(pid, 0)[1]}


def stages(work):
    found = (path for path in work.glob("*-*") if path.is_dir())
    return [path for path in found if not path.name.startswith(".")]


def is_training(work, finished):
    """Whether so many trainings are finished and the next has a checkpoint."""
    return len(stages(work)) >= finished and any(work.glob("*.safetensors"))


@pytest.mark.slow
def test_killed_and_resumed(tmp_path, built_kernels):
    write_stranger(tmp_path)
    (tmp_path / "cache").mkdir()
    (tmp_path / f"cache/kernels-{os.geteuid()}").symlink_to(built_kernels)
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "ECG_CACHE": str(tmp_path / "cache")}
        | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == 0
    assert found["after"] == [0, 1, 2]
    whole, killed = tmp_path / "whole/model", tmp_path / "killed/model"
    for path in whole.iterdir():
        assert (killed / path.name).read_bytes() == path.read_bytes(), path.name
    assert ".model.fit" not in {path.name for path in killed.parent.iterdir()}


@pytest.mark.parametrize("module", [best_fit, fitting])
def test_a_model_is_written_in_a_folder_that_a_resumed_fit_removes(
    module, monkeypatch, tmp_path
):
    """Killed meanwhile, it would else stay there for ever, under a hidden name."""
    places = []

    def write(folder, *_):
        places.extend(folder.parents)
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "write_model", write)
    settings = {"budget": 1.0} if module is best_fit else {"steps": 2}
    fit_one = getattr(module, "fit_best" if module is best_fit else "fit_model")
    with pytest.raises(KeyboardInterrupt):
        fit_one(load_named_graph("csbm:nodes=60"), tmp_path / "m", **settings)
    assert tmp_path / ".m.fit" in places


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    whole = fork(lambda: fit(folder, folder / "whole/model"))
    assert os.waitpid(whole, 0)[1] == 0
    found = kill_three_times(folder, folder / "killed/model")
    sys.stdout.write(json.dumps(found))
