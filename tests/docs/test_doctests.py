"""Examples in docstrings: everything that the reference shows has one, and it runs."""

import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import ecg_gnn
from documented import GUIDE

SHOWN = re.findall(r"^::: (\S+)$", (GUIDE / "api.md").read_text(), re.MULTILINE)
# What the page says that its examples assume.
ASSUMED = {"Path": Path, "np": np, "torch": torch}


def find(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def test_every_public_name_is_shown():
    shown = [find(path) for path in SHOWN]
    public = [name for name in ecg_gnn.__all__ if name != "__version__"]
    assert not [name for name in public if getattr(ecg_gnn, name) not in shown]


@pytest.mark.parametrize("path", SHOWN)
def test_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = find(path)
    names = ASSUMED | {thing.__name__: thing}
    tests = doctest.DocTestFinder().find(thing, path, globs=names)
    assert any(test.examples for test in tests), "no example in the docstring"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report = []
    for test in tests:
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
