"""Studies in processes that are killed or run at once; started by test_killed.py.

Children are forked, so that only one process has to load everything. Nothing is
computed before: threads do not survive a fork.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from ecg_gnn.study import Store, run_study
from ecg_gnn.study.workers import start_worker
from ecg_gnn.system.checks import InputError
from small_studies import small_recipe

RECIPE = small_recipe(models=["gcn"], seeds=[0, 1], settings={"train.steps": 20})
NUM_UNITS = 20


def fork(work):
    """Do something in a child."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return pid


def wait_until(condition, seconds=100):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"waited in vain for {condition}")
        time.sleep(0.01)


def finished(path):
    try:
        with Store.open(path) as store:
            return len(store.records())
    except InputError:  # it is not there yet, or being made
        return 0


def kill_three_times(path):
    """Kill a study at random moments, each time after some progress."""
    after = []
    for _ in range(3):
        before = finished(path)
        pid = fork(lambda: run_study(RECIPE, path))
        wait_until(lambda least=before: finished(path) > least)
        time.sleep(random.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        after.append(finished(path))
    return after


def run_twice_at_once(path, folder):
    def work(name):
        report = run_study(RECIPE, path)
        (folder / name).write_text(json.dumps(report.ran))

    children = [fork(lambda name=name: work(name)) for name in ("first", "second")]
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    ran = [json.loads((folder / name).read_text()) for name in ("first", "second")]
    return {"statuses": statuses, "ran": ran}


def kill_a_parent(folder):
    """A worker's pid, and whether it lived before and after its parent was killed."""

    def worker():
        start_worker(1, os.getppid())
        (folder / "worker").write_text(str(os.getpid()))
        time.sleep(60)

    def parent():
        fork(worker)
        time.sleep(60)

    pid = fork(parent)
    wait_until(lambda: (folder / "worker").exists() and (folder / "worker").read_text())
    worker_pid = (folder / "worker").read_text()
    alive = Path(f"/proc/{worker_pid}").exists()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: not is_running(worker_pid), 20)
    return alive


def is_running(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = {
        "worker_ended": kill_a_parent(folder),
        "killed": kill_three_times(folder / "killed.sqlite"),
        "at_once": run_twice_at_once(folder / "twice.sqlite", folder),
    }
    sys.stdout.write(json.dumps(found))
