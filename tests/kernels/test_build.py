"""Building the C++ kernels: once, cached, and never in the way."""

import os
import stat

import pytest

from ecg_gnn.kernels import compiled as build


@pytest.fixture
def fresh_library(monkeypatch, tmp_path):
    """``library`` without what this process, or any before it, has built already."""
    monkeypatch.setenv("ECG_CACHE", str(tmp_path / "empty"))
    return build.library.__wrapped__


def test_built_once_and_cached(fresh_library, monkeypatch):
    if fresh_library() is None:
        pytest.skip("no C++ compiler")
    (built,) = build.cache_folder("kernels").iterdir()
    monkeypatch.setattr(build, "_build", lambda *args: pytest.fail("built again"))
    assert fresh_library() is not None
    assert [*build.cache_folder("kernels").iterdir()] == [built]


def test_no_compiler_is_a_warning(fresh_library, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        assert fresh_library() is None


def test_failing_compiler_is_a_warning_and_leaves_nothing(
    fresh_library, monkeypatch, tmp_path
):
    broken = tmp_path / "broken-compiler"
    broken.write_text("#!/bin/sh\necho 'fatal: no' >&2\nexit 1\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("CXX", os.fspath(broken))
    with pytest.warns(UserWarning, match="cannot be built .*fatal: no"):
        assert fresh_library() is None
    assert not [*build.cache_folder("kernels").rglob("*")]
