"""Building the C++ kernels: once, cached, never in the way, and nobody else's."""

import os
import signal
import stat
import subprocess
import sys
import time

import psutil
import pytest

from ecg_gnn.kernels.compiled import building

TRIVIAL = 'extern "C" int answer() { return 42; }\n'
PROGRAM = "from ecg_gnn.kernels.compiled.building import library; library()"


@pytest.fixture
def fresh_library(monkeypatch, tmp_path):
    """``library`` without what this process, or any before it, has built already."""
    monkeypatch.setenv("ECG_CACHE", str(tmp_path / "empty"))
    return building.library.__wrapped__


@pytest.fixture
def small_library(fresh_library, monkeypatch, tmp_path):
    """The same of a package that is built in a moment."""
    if not building.shutil.which(building._compiler()[0]):
        pytest.skip("no C++ compiler")
    (tmp_path / "small_kernels").mkdir()
    (tmp_path / "small_kernels" / "__init__.py").touch()
    (tmp_path / "small_kernels" / "small.cpp").write_text(TRIVIAL)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda: fresh_library("small_kernels", "small")


def kept():
    return sorted(building.cache_folder(f"kernels-{os.geteuid()}").rglob("*"))


def compiler_that(tmp_path, monkeypatch, does):
    script = tmp_path / "compiler"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", os.fspath(script))


def test_built_once_and_cached(small_library, monkeypatch):
    assert small_library().answer() == 42
    (built,) = kept()
    monkeypatch.setattr(building, "_build", lambda *args: pytest.fail("built again"))
    assert small_library().answer() == 42
    assert kept() == [built]


def test_no_compiler_is_a_warning(fresh_library, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        assert fresh_library() is None


FAILURES = {
    "echo 'fatal: no' >&2; exit 1": "cannot be built .*fatal: no",
    # It writes an empty library, but no file when it is asked for its version.
    "for last; do :; done; [ $last = --version ] || : > $last": (
        "cannot be built .*file too short"
    ),
}


@pytest.mark.parametrize("does", FAILURES)
def test_broken_compiler_is_a_warning_and_leaves_nothing(
    fresh_library, monkeypatch, tmp_path, does
):
    compiler_that(tmp_path, monkeypatch, does)
    with pytest.warns(UserWarning, match=FAILURES[does]):
        assert fresh_library() is None
    assert not kept()


@pytest.mark.parametrize("size", [0, 5000])
def test_damaged_library_is_built_anew(small_library, size):
    small_library()
    (built,) = kept()
    content = built.read_bytes()[:size]
    built.unlink()  # not in place: this process has it loaded
    built.write_bytes(content)
    assert small_library().answer() == 42
    assert kept() == [built]
    assert built.stat().st_size > size


def test_only_what_nobody_else_can_have_put_there_is_loaded(small_library):
    """A stranger's file in the place and under the name that are expected."""
    small_library()
    (built,) = kept()
    before = built.stat().st_ino
    built.chmod(0o666)
    small_library()
    assert built.stat().st_ino != before
    built.parent.chmod(0o777)
    small_library()
    assert stat.S_IMODE(built.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_somebody_else_is_not_used(small_library):
    small_library()
    (built,) = kept()
    os.chown(built.parent, 12345, -1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert small_library() is None


def test_nothing_of_an_interrupted_compiler_goes_on(tmp_path):
    if not building.shutil.which(building._compiler()[0]):
        pytest.skip("no C++ compiler")
    cache = {"ECG_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | cache,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    children, until = [], time.monotonic() + 60
    while len(children) < 2 and time.monotonic() < until:
        time.sleep(0.02)
        children = psutil.Process(process.pid).children(recursive=True)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
