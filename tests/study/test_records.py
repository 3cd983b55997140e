"""The commit that a record names, and what asking for it leaves in the checkout."""

import os
import subprocess

import pytest

from ecg_gnn.study import records


@pytest.fixture
def checkout(monkeypatch, tmp_path):
    def git(*arguments):
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", tmp_path, *names, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    (tmp_path / "code.py").write_text("x = 1\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    monkeypatch.delenv("ECG_COMMIT", raising=False)
    monkeypatch.setattr(records, "__file__", str(tmp_path / "code.py"))
    return tmp_path


def test_changes_are_marked(checkout):
    clean = records._commit()
    (checkout / "new.py").touch()
    assert records._commit() == clean
    (checkout / "code.py").write_text("x = 2\n")
    assert records._commit() == f"{clean}-dirty"


def test_nothing_is_written_into_the_checkout(checkout):
    """Whoever is killed while git writes would leave its lock behind."""
    os.utime(checkout / "code.py", (1, 1))
    index = checkout / ".git" / "index"
    before = index.stat()
    assert records._commit()
    assert (index.stat().st_mtime_ns, index.stat().st_ino) == (
        before.st_mtime_ns,
        before.st_ino,
    )
