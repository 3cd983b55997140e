"""The command line inside the test's own process, and graphs of one's own."""

import sys

import numpy as np
import pytest

from ecg_gnn.cli import main
from small_runs import ring_arrays


@pytest.fixture
def ecg_gnn(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["ecg-gnn", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call


@pytest.fixture
def refused(ecg_gnn, tmp_path):
    """Run it, expect one line and exit status 2, and give the line."""

    def call(*arguments):
        before = sorted(tmp_path.rglob("*"))
        status, out, err = ecg_gnn(*arguments)
        assert status == 2, err
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        assert sorted(tmp_path.rglob("*")) == before, "something was left behind"
        return err

    return call


@pytest.fixture
def graph_file(tmp_path):
    """Write an .npz file of one's own."""

    def write(name="graph.npz", **changed):
        np.savez(tmp_path / name, **ring_arrays(**changed))
        return tmp_path / name

    return write
