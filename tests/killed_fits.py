"""Fits in processes that are killed; started by own/test_killed.py.

Children are forked, so that only one process has to load everything. Nothing is
computed before: threads do not survive a fork.
"""

import dataclasses
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from ecg_gnn.inference import classifier
from ecg_gnn.inference.defaults import FitOptions
from ecg_gnn.inference.fitting import fit_model
from ecg_gnn.tabular import ImportOptions, import_files
from killed_studies import fork, wait_until

OPTIONS = FitOptions(steps=200, hidden=16, layers=1, k=4, device="cpu")
SAFELY = classifier.train_config


def train_config(*arguments):
    """Checkpoints several times in a training that takes a second."""
    return dataclasses.replace(SAFELY(*arguments), checkpoint_seconds=0.05)


def fit(folder, out):
    classifier.train_config = train_config
    pair = (folder / "nodes.csv", folder / "edges.csv")
    fit_model(import_files(*pair, ImportOptions(label="kind")), OPTIONS, out)


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
    return [path for path in work.glob("*-*") if path.is_dir()]


def is_training(work, finished):
    """Whether so many trainings are finished and the next has a checkpoint."""
    return len(stages(work)) >= finished and any(work.glob("*.safetensors"))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    whole = fork(lambda: fit(folder, folder / "whole/model"))
    assert os.waitpid(whole, 0)[1] == 0
    found = kill_three_times(folder, folder / "killed/model")
    sys.stdout.write(json.dumps(found))
