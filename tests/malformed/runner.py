"""Runs the command line on malformed files and says what was wrong with its answer."""

import contextlib
import io
import os
import resource
import sys
import time
import traceback
import warnings
from hashlib import sha256
from pathlib import Path
from unittest import mock

import psutil
import typer

from ecg_gnn.cli import main
from ecg_gnn.cli import verbs as cli_app

SECONDS = 30
GIBIBYTE = 1 << 30
MINE = b"mine"
"""What is in output files before a command may write them."""


class Runner:
    """One process, one folder: files are put there, a command runs, files go again.

    Args:
        folder: Has the valid files, and outputs with MINE in them.
        right: Told after a command has succeeded all the same; says what is wrong.
    """

    def __init__(self, folder, right):
        self.folder, self.right = folder, right
        self.kept = {path: path.read_bytes() for path in files_in(folder)}
        self.signatures = {path: signature(path) for path in self.kept}
        self.refused = set()
        self.accepted = 0

    def problem(self, case):
        """What is wrong with the answer to a malformed input; None if nothing is."""
        for name, content in case.files.items():
            put(self.folder / name, content)
        before = files_in(self.folder)
        started = time.monotonic()
        status, out, err = run(case.command)
        seconds = time.monotonic() - started
        found = self._judge(case, status, out, err)
        left = sorted(set(files_in(self.folder)) - set(before))
        if not found and status and left:
            found = f"left behind {left}"
        if not found and status and (changed := self._changed(case)):
            found = f"wrote over {changed}"
        if not found and seconds > SECONDS:
            found = f"took {seconds:.0f} s"
        self._restore(left, case)
        return found and f"{case.name}: {found}"

    def _judge(self, case, status, out, err):
        if isinstance(status, str):
            return status
        if status == 0:
            self.accepted += 1
            return self.right(case, out)
        one_line = err.startswith("error: ") and err.count("\n") == 1
        if status != 2 or out or not one_line or not err.endswith("\n"):
            return f"status {status}, out {out!r:.80}, err {err!r:.300}"
        if case.passed and case.passed in err:
            self.accepted += 1
        else:
            self.refused.add(fingerprint(case))
        return None

    def _changed(self, case):
        ours = {self.folder / name for name in case.files}
        return [
            path
            for path in self._touched()
            if path not in ours and path.read_bytes() != self.kept[path]
        ]

    def _touched(self):
        """Files that may be others than they were, without reading them all."""
        known = self.signatures.items()
        return [path for path, before in known if signature(path) != before]

    def _restore(self, left, case):
        for path in left:
            path.unlink()
        for name in case.files:
            put(self.folder / name, None)
        for path in self._touched():
            put(path, self.kept[path])
            self.signatures[path] = signature(path)
        for folder, _, _ in os.walk(self.folder, topdown=False):
            if not os.listdir(folder):
                os.rmdir(folder)


def run(command):
    """The command's status and output; a text in place of the status is a traceback."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["ecg-gnn", *command]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        as_users_see()
        try:
            main()
        except SystemExit as stop:
            status = stop.code
        except BaseException as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            status = f"{error!r:.200} in {place.filename}:{place.lineno}"
    return status, out.getvalue(), err.getvalue()


def as_users_see():
    """Warnings as they come on a command line, and none of them only once."""
    warnings.resetwarnings()
    warnings.simplefilter("always")
    for hidden in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):
        warnings.simplefilter("ignore", hidden)


@contextlib.contextmanager
def memory_of(gibibytes):
    """No more memory than that on top of what there is: a bomb would not fit."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + gibibytes * GIBIBYTE
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@contextlib.contextmanager
def built_once():
    """The command line built once and not for every call, which would take a minute."""
    before = cli_app.app
    cli_app.app = typer.main.get_command(before)
    try:
        yield
    finally:
        cli_app.app = before


def fingerprint(case):
    """Equal for two inputs that are the same."""
    digest = sha256(repr(case.command).encode())
    for name, content in sorted(case.files.items()):
        digest.update(repr((name, content)).encode())
    return digest.digest()


def files_in(folder):
    found = [Path(where, name) for where, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.is_file())


def signature(path):
    """What changes with every write: when it was, how long it is, which file it is."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def put(path, content):
    if content is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
