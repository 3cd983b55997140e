"""Examples in docstrings: everything that the reference shows has one, and it runs."""

import dataclasses
import doctest
import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import ecg_gnn
from documented import GUIDE
from ecg_gnn.config import RunConfig
from ecg_gnn.config.run_config import SECTIONS

SHOWN = re.findall(r"^::: (\S+)$", (GUIDE / "api.md").read_text(), re.MULTILINE)
# What the page says that its examples assume.
ASSUMED = {"Path": Path, "np": np, "torch": torch}


def find(path):
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def test_the_reference_shows_the_public_names_and_no_others():
    public = [f"ecg_gnn.{name}" for name in ecg_gnn.__all__ if name != "__version__"]
    assert sorted(SHOWN) == public


@pytest.mark.parametrize("section", [RunConfig, *SECTIONS])
def test_help_names_every_setting(section):
    for field in dataclasses.fields(section):
        assert f"\n    {field.name}: " in section.__doc__


@pytest.mark.parametrize("path", SHOWN)
def test_example_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = find(path)
    names = ASSUMED | {thing.__name__: thing}
    tests = doctest.DocTestFinder().find(thing, path, globs=names)
    examples = [example for test in tests for example in test.examples]
    assert any(each.want for each in examples), "no example that shows a result"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report = []
    for test in tests:
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)
