"""Ctrl-C while the command starts, where libraries swallow what is raised."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from contextlib import closing

import pytest

from ecg_gnn.study import workers
from ecg_gnn.system import interrupts
from small_runs import BOARD

VERB = [sys.executable, "-m", "ecg_gnn", "homophily", "--dataset", BOARD]


# Python imports this module, if it finds one, before anything else.
INTERRUPTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


def interrupted_at(module, handler, folder):
    """Run a command that is interrupted while it imports a module."""
    (folder / "sitecustomize.py").write_text(INTERRUPTING)
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    env = os.environ | {"INTERRUPTED_AT": module, "PYTHONPATH": paths}
    done = subprocess.run(
        VERB,
        env=env | {"PYTHONDONTWRITEBYTECODE": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    assert [each.name for each in folder.iterdir()] == ["sitecustomize.py"]
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "ecg_gnn.system.checks",
        "typer.core",
        "numpy.linalg",
        "torch.version",
        "torch._tensor",
        "torch.fx",
        "ecg_gnn.data.generators",
    ],
)
def test_during_imports(module, tmp_path):
    status, out, said = interrupted_at(module, signal.SIG_DFL, tmp_path)
    assert (status, out, said) == (130, "", "error: interrupted\n")


def test_a_deaf_command_stays_deaf(tmp_path):
    status, out, said = interrupted_at("typer.core", signal.SIG_IGN, tmp_path)
    assert (status, said) == (0, "")
    assert out.startswith(BOARD)


def test_after_an_import(monkeypatch, tmp_path):
    """An interrupt inside an import is raised once the import is done."""
    module = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhole = True\n"
    (tmp_path / "interrupted_module.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    before = signal.signal(signal.SIGINT, interrupts._raise)
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            import interrupted_module

            assert interrupted_module.whole
            while True:
                pass
    finally:
        signal.signal(signal.SIGINT, before)


class Dying:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_while_an_object_is_deleted(monkeypatch):
    """Where Python prints what is raised, and goes on."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    before = signal.signal(signal.SIGINT, interrupts._end_at_once)
    try:
        interrupts.begin()
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            Dying()
            for _ in range(1000):
                pass
    finally:
        signal.signal(signal.SIGINT, before)


def test_while_workers_start(monkeypatch):
    """Held back until all are started, which hear nothing; then raised."""
    started = []

    class Executor:
        def __init__(self, **_):
            pass

        def submit(self, *_):
            signal.raise_signal(signal.SIGINT)
            held_back = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            started.append(signal.SIGINT in held_back)
            return Future()

        def shutdown(self, **_):
            started.append("ended")

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Executor)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), closing(workers.WorkerPool(2)) as pool:
            list(pool.each(print, [1, 2]))
    finally:
        signal.signal(signal.SIGINT, before)
    assert started == [True, True, "ended"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_a_worker_whose_parent_is_gone_already():
    script = "import time; from ecg_gnn.study.workers import start_worker\n"
    script += "start_worker(1, 2**30); time.sleep(100)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, b"")
