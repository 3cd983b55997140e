"""Files and folders are whole or not there, and what failed leaves no trace."""

import errno
import os
import resource
import shutil
from pathlib import Path

import numpy as np
import pytest

from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.system.files import (
    atomic_folder,
    atomic_path,
    check_free,
    kept_until,
    made_folder,
    write_array,
    write_text,
)


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("writes", [atomic_path, atomic_folder])
def test_a_failure_leaves_no_trace(tmp_path, writes):
    def fail():
        with writes(tmp_path / "a/b/c") as temporary:
            assert temporary.parent.exists()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert everything(tmp_path) == []


def test_an_output_folder_that_cannot_be_made_is_refused_at_once(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "other").symlink_to("empty")
    before = everything(tmp_path)
    for free in ("new", "empty", "new/in/new"):
        check_free(tmp_path / free)
    for taken in ("link", "other", "file", "file/below", "n" * 250):
        with pytest.raises(InputError, match=r"must not exist yet|cannot be written"):
            check_free(tmp_path / taken)
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(InputError, match="must not be the current folder"):
        check_free(Path())
    assert everything(tmp_path) == before


def test_folders_in_use_stay(tmp_path):
    def fail():
        with made_folder(tmp_path / "a/b"):
            (tmp_path / "a/mine").write_text("mine")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert everything(tmp_path) == ["a", "a/mine"]
    with made_folder(tmp_path / "c/d"):
        pass
    assert (tmp_path / "c/d").is_dir()


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(NotADirectoryError, match="a/b"):
        write_text(tmp_path / "a/b/c", "new")
    assert (tmp_path / "a").read_text() == "mine"


def test_an_old_file_stays_until_the_new_one_is_on_the_disk(tmp_path, monkeypatch):
    write_text(tmp_path / "a", "old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=rf"No space left on device: '{tmp_path}/a'"):
        write_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    assert everything(tmp_path) == ["a"]


def test_control_characters_are_spelled():
    assert printable("Zürich − 日本") == "Zürich − 日本"
    assert printable("a\x1b[2Jb\n\ud800") == r"a\x1b[2Jb\n\ud800"


@pytest.mark.parametrize("shape", [(3, 4), (0, 2), (2, 500)])
def test_arrays_come_back(tmp_path, shape):
    array = np.arange(np.prod(shape)).reshape(shape)
    write_array(tmp_path / "a.npy", array)
    write_array(tmp_path / "b.npy", np.asfortranarray(array))
    for name in ("a.npy", "b.npy"):
        assert np.array_equal(np.load(tmp_path / name), array)


def test_arrays_that_a_full_disk_cuts_off_are_noticed(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match=r"a\.npy"):
            write_array(tmp_path / "a.npy", np.zeros(300))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert everything(tmp_path) == []


def test_an_interrupt_leaves_no_work_beside_a_result(tmp_path, monkeypatch):
    done, work = tmp_path / "result", tmp_path / "work"
    work.mkdir()
    interrupts = [KeyboardInterrupt]
    remove = shutil.rmtree

    def interrupted_once(*args, **options):
        if interrupts:
            raise interrupts.pop()
        remove(*args, **options)

    monkeypatch.setattr(shutil, "rmtree", interrupted_once)
    with pytest.raises(KeyboardInterrupt), kept_until(done, work):
        done.touch()
    assert not work.exists()


def test_work_without_a_result_is_kept(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(KeyboardInterrupt), kept_until(tmp_path / "result", work):
        raise KeyboardInterrupt
    assert work.exists()
