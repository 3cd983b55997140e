"""Ctrl-C while the command starts, where libraries swallow what is raised."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future

import pytest

from ecg_gnn.study import workers
from ecg_gnn.system import interrupts
from small_runs import BOARD

VERB = [sys.executable, "-m", "ecg_gnn", "homophily", "--dataset", BOARD]


def start(handler, **options):
    # With this, Python names every module on stderr when it has been imported.
    env = os.environ | {"PYTHONPROFILEIMPORTTIME": "1", "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, handler)}
    return subprocess.Popen(VERB, env=env, **pipes, **heard, **options)


def interrupted_after(module, process):
    """Interrupt a process as soon as it has imported a module."""
    for line in process.stderr:
        if line.rpartition("|")[2].strip() == module:
            process.send_signal(signal.SIGINT)
            break
    else:
        pytest.fail(f"{module} is not imported")
    out, err = process.communicate(timeout=120)
    said = [line for line in err.splitlines() if not line.startswith("import time:")]
    return process.returncode, out, said


@pytest.mark.parametrize(
    "module",
    [
        "ecg_gnn.system.interrupts",
        "ecg_gnn.system.checks",
        "typer.core",
        "numpy.linalg",
        "torch.version",
        "torch._tensor",
    ],
)
def test_during_imports(module, tmp_path):
    process = start(signal.SIG_DFL, cwd=tmp_path)
    status, out, said = interrupted_after(module, process)
    assert (status, out, said) == (130, "", ["error: interrupted"])
    assert not any(tmp_path.iterdir())


def test_a_deaf_command_stays_deaf():
    status, out, said = interrupted_after("typer.core", start(signal.SIG_IGN))
    assert (status, said) == (0, [])
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


def test_while_workers_start(monkeypatch):
    """Held back until all are started, which hear nothing; then raised."""
    started = []

    class Executor:
        def __init__(self, **_):
            pass

        def submit(self, *_):
            os.kill(os.getpid(), signal.SIGINT)
            held_back = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            started.append(signal.SIGINT in held_back)
            return Future()

        def shutdown(self, **_):
            started.append("ended")

    monkeypatch.setattr(workers, "ProcessPoolExecutor", Executor)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), workers.WorkerPool(2) as pool:
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
