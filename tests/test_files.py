"""Files and folders are whole or not there, and what failed leaves no trace."""

import errno
import os

import pytest

from ecg_gnn.checks import printable
from ecg_gnn.files import atomic_folder, atomic_path, made_folder, write_text


def everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("writes", [atomic_path, atomic_folder])
def test_a_failure_leaves_no_trace(tmp_path, writes):
    def fail():
        with writes(tmp_path / "a/b/c") as temporary:
            assert temporary.exists()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert everything(tmp_path) == []


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
