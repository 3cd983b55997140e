"""Commands as processes: what they read, how they are begun, what they must leave."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing import util
from pathlib import Path

import numpy as np
import yaml

from ecg_gnn import cli
from ecg_gnn.system import interrupts
from malformed import folders, stores, tables
from malformed.runner import files_in, put
from small_runs import BOARD, RUN
from small_studies import SMALL_RECIPE

STORE = ("--store", "s.sqlite")
SEARCH = ("fit", "--dataset", "folder", "--out", "found", "--budget", "2s")
COMMANDS = {
    "run": (*RUN, "--out", "ran"),
    "run, two jobs": (*RUN, "--jobs", "2", "--out", "ran"),
    "homophily": ("homophily", "--dataset", BOARD, "--embedding", "mlp", "--json"),
    "knn": ("knn", "--embeddings", "z.npy", "--k", "3", "--out", "out.npy"),
    "advise": ("advise", "--dataset", "folder", "--budget", "2s"),
    "fit": (*folders.FIT[:4], "fitted", *folders.FIT[5:]),
    "fit, a search": SEARCH,
    "predict": folders.LATER,
    "explain": (*folders.EXPLAIN, "--out", "out.svg"),
    "score": ("score", "said.csv", "nodes.csv", "--label", "kind"),
    "study run": ("study", "run", "recipe.yaml", "--store", "new.sqlite"),
    "study table": (*stores.TABLES[0], "--out", "out.json"),
    "study report": ("study", "report", *STORE, "--out", "out.html"),
    "study export": ("study", "export", *STORE, "--out", "out.jsonl"),
    "study status": ("study", "status", *STORE),
    "data import": (*folders.IMPORT[:-1], "again"),
    "data get": ("data", "get", BOARD, "--out", "out.npz"),
    "data info": ("data", "info", "folder"),
    "data list": ("data", "list"),
    "help": ("--help",),
}
RESUMED = {"run": "ran/", "fit": ".fitted.fit/", "study run": "new.sqlite"}
RESUMED |= {"run, two jobs": "ran/", "fit, a search": ".found.fit/"}
"""What an ended command may leave, since the same command goes on with it."""
WHOLE = {}
"""What every command leaves that nothing disturbs; an interrupt may come after that."""
HANGS = 120
"""Seconds after which a process counts as hanging."""


KERNELS = Path(tempfile.mkdtemp(prefix="chaos-kernels-"))
"""Compiled kernels, which are made once."""


def prepare(folder):
    """Make the files that commands read, and return how long each command takes."""
    empty(folder)
    for name, content in (tables.VALID | folders.NEW).items():
        put(folder / "work" / name, content)
    recipe = SMALL_RECIPE | {"models": ["gcn"], "variants": ["baseline", "mlp"]}
    put(folder / "work/recipe.yaml", yaml.safe_dump(recipe).encode())
    np.save(folder / "work/z.npy", np.random.default_rng(0).normal(size=(60, 4)))
    stores.make_store(folder / "work/s.sqlite")
    said = (*folders.EVERY[:-1], "said.csv")
    for command in (folders.IMPORT, folders.FIT, said):
        status = ended(begin(command, folder))
        assert status == 0, (folder / "stderr").read_text()
    seconds = {}
    for name, command in COMMANDS.items():
        place = copied(folder, folder.with_name("timed"))
        start, before = time.monotonic(), contents(place)
        assert ended(begin(command, place)) == 0, (place / "stderr").read_text()
        seconds[name] = time.monotonic() - start
        WHOLE[name] = contents(place).keys() - before.keys()
        WHOLE[name] = {path.relative_to(place) for path in WHOLE[name]}
        shutil.rmtree(place)
    return seconds


def copied(scene, place):
    """A place for one try: the files, an empty cache and an empty temporary folder."""
    shutil.copytree(scene / "work", empty(place) / "work", dirs_exist_ok=True)
    return place


def empty(place):
    """A place for one try without files."""
    for part in ("work", "tmp", "cache"):
        (place / part).mkdir(parents=True)
    (place / f"cache/kernels-{os.geteuid()}").symlink_to(KERNELS)
    return place


def environment(place):
    return os.environ | {"ECG_CACHE": f"{place}/cache", "TMPDIR": f"{place}/tmp"}


def started(command, place):
    """A command as a user starts it, in a group of its own."""
    with (place / "stdout").open("wb") as out, (place / "stderr").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "ecg_gnn", *command],
            stdout=out,
            stderr=err,
            cwd=place / "work",
            env=environment(place),
            start_new_session=True,
            # Whoever started this in the background had it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    process.returncode = 0  # waited for by its number, as forked ones are
    return process.pid


def begin(command, place):
    """A command in a fork of this process, which has imported everything already."""

    def run():
        atexit._clear()  # what this process has to do at its end is not the child's
        sys.argv = sys.orig_argv = ["ecg-gnn", *command]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupts.listen()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        try:
            cli.main()
        finally:  # what the interpreter does at its end, in a process of its own
            threading._shutdown()
            util._exit_function()
            atexit._run_exitfuncs()

    return forked(run, place)


def forked(work, place):
    """Do something in a child, whose output goes to files."""
    # Interrupts are for what is done, not for what this process would do on its way.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    if pid := os.fork():
        while os.getpgid(pid) != pid:
            time.sleep(0.001)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        return pid
    status: object = 1
    try:
        os.setsid()
        os.environ.update(environment(place))
        tempfile.tempdir = None
        os.chdir(place / "work")
        for number, name in ((1, "stdout"), (2, "stderr")):
            file = os.open(place / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(file, number)
        sys.stdout, sys.stderr = (open(n, "w", closefd=False) for n in (1, 2))  # noqa: SIM115
        work()
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError):  # the disk may be full
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


def ended(pid, seconds=HANGS):
    """The status of a process, negative for a signal; None for one that hangs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def survivors(pid, seconds=20.0):
    """Processes of a group that go on although its first has ended."""
    deadline, left = time.monotonic() + seconds, [pid]
    while left and time.monotonic() < deadline:
        left = [each for each in Path("/proc").glob("[0-9]*") if _is_of(each, pid)]
        time.sleep(0.02 if left else 0)
    return left


def _is_of(process, group):
    try:
        state = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(state[2]) == group and state[0] != "Z"


def what_is_wrong(name, place, status, before, allowed=(0, 130)):
    """One sentence on how a command ended and what it left, or None."""
    err = (place / "stderr").read_text(errors="replace")
    lines = err.splitlines()
    if status is None:
        return f"{name}: hangs"
    if "Traceback" in err or "Exception ignored" in err:
        return f"{name}: a traceback ({lines[-1]:.120})"
    if status not in allowed:
        return f"{name}: status {status} ({err[-120:]!r})"
    errors = [line for line in lines if line.startswith("error: ")]
    if status and errors != lines[-1:]:
        return f"{name}: not one line at last ({err[-160:]!r})"
    if status == 130 and not errors[0].startswith("error: interrupted"):
        return f"{name}: 130 with {errors[0]!r:.120}"
    return what_is_left(name, place, status, before)


def what_is_left(name, place, status, before):
    """One sentence on files that should not be there, or not be changed, or None."""
    if left := sorted(path.name for path in (place / "tmp").iterdir()):
        return f"{name}: temporary files {left[:3]}"
    now = contents(place)
    if any(now.get(path) != content for path, content in before.items()):
        return f"{name}: files were changed"
    new = [str(path.relative_to(place / "work")) for path in now if path not in before]
    begun = RESUMED.get(name, "nothing")
    half = [path for path in new if re.search(r"(^|/)\..*\.\w{8}(\.|/|$)", path)]
    if {Path("work", path) for path in new} == WHOLE.get(name):
        return None
    if half or (status and not all(path.startswith(begun) for path in new)):
        return f"{name}: left behind {(half or new)[:3]}"
    return None


def contents(place):
    return {path: path.read_bytes() for path in files_in(place / "work")}
