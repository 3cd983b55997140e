"""A fit that is killed at any moment goes on, and ends as if nothing had happened."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from own_graphs import write_stranger

TESTS = Path(__file__).parents[1]


@pytest.mark.slow
def test_killed_and_resumed(tmp_path, built_kernels):
    write_stranger(tmp_path)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/kernels").symlink_to(built_kernels)
    done = subprocess.run(
        [sys.executable, str(TESTS / "killed_fits.py"), str(tmp_path)],
        env=os.environ
        | {"OMP_NUM_THREADS": "1", "ECG_CACHE": str(tmp_path / "cache")}
        | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["status"] == 0
    assert found["after"] == [0, 1, 2]
    whole, killed = tmp_path / "whole/model", tmp_path / "killed/model"
    for path in whole.iterdir():
        assert (killed / path.name).read_bytes() == path.read_bytes(), path.name
    assert ".model.fit" not in {path.name for path in killed.parent.iterdir()}
