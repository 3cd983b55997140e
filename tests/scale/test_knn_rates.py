"""The measurement of kNN rates: the rates are those of the seconds it says."""

import importlib.util
from pathlib import Path

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "scale" / "knn_rates.py"


@pytest.fixture(scope="module")
def rates():
    spec = importlib.util.spec_from_file_location("knn_rates", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_search_is_timed(rates):
    timing = rates.measure("clusters", 300, 8, torch.device("cpu"), 100.0)
    assert timing.rate == pytest.approx(300 * 300 * 8 / timing.seconds)
    assert len(rates.table([timing, timing]).splitlines()) == 4
