"""Scripts of the results, imported from where they lie."""

import importlib
import sys
from pathlib import Path

import pytest

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def script(monkeypatch):
    """A function that imports one by its name; all are forgotten afterwards."""
    names = [path.stem for path in RESULTS.glob("*.py")]
    monkeypatch.syspath_prepend(RESULTS)
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
