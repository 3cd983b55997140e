"""The command line as a process: pipes, signals, going on."""

import json
import os
import signal
import subprocess
import sys
import time

from small_runs import BOARD, RUN

CPU = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def start(*arguments, **options):
    command = [sys.executable, "-m", "ecg_gnn", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # Whoever runs the tests in the background may have had SIGINT ignored.
    heard = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    return subprocess.Popen(command, **pipes | heard | {"env": CPU} | options)


def test_module_prints_json_and_keeps_it_apart(tmp_path):
    process = start("homophily", "--dataset", BOARD, "--json", cwd=tmp_path)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert set(json.loads(out)) == {"graph", "evolved"}
    assert not any(tmp_path.iterdir())


def test_a_reader_that_leaves_early_and_a_terminal_without_unicode():
    with start("data", "list", env=CPU | {"PYTHONIOENCODING": "ascii"}) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 1


def test_interrupted_run_goes_on(tmp_path):
    options = [*RUN, "--steps", 150, "--out", "out"]
    process = start(*options, cwd=tmp_path, text=True)
    records = tmp_path / "out/records"
    deadline = time.monotonic() + 120
    while not list(records.glob("[!.]*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1].startswith("error: interrupted")
    assert "Traceback" not in err
    left = {path.name: path.read_bytes() for path in records.iterdir()}
    assert 0 < len(left) < 6
    again = start(*options, "--json", cwd=tmp_path, text=True)
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert len(json.loads(out)["results"]) == 4
    for name, content in left.items():
        assert (records / name).read_bytes() == content
