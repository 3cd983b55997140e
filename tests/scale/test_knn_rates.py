"""The measurement of kNN rates: both searches find the same, at the rates it says."""

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


def test_both_searches_find_the_same(rates, monkeypatch):
    monkeypatch.setitem(rates.ROWS_OF_PAIRS, "cpu", 300 * 100)
    clock = rates.Clock(torch.device("cpu"), 100)
    alone, blocks = rates.measure("clusters", 300, 8, clock)
    assert (alone.search, alone.rows, alone.same) == ("in memory", 300, None)
    assert (blocks.search, blocks.rows, blocks.same) == ("in blocks", 100, True)
    for timing in (alone, blocks):
        assert timing.rate == pytest.approx(timing.rows * 300 * 8 / timing.seconds)
    assert len(rates.table([alone, blocks]).splitlines()) == 4
    # Twice the rows, four times the pairs; but no more of them are timed in blocks.
    expected = rates.expected_seconds(600, 8, clock.device, [alone, blocks])
    assert expected == pytest.approx(4 * alone.seconds + blocks.seconds)


def test_neighbours_that_differ_are_noticed(rates, monkeypatch):
    wrong = torch.zeros((40, rates.K), dtype=torch.long)
    monkeypatch.setattr(rates, "in_blocks", lambda *_: wrong)
    clock = rates.Clock(torch.device("cpu"), 100)
    assert rates.measure("random", 40, 4, clock)[1].same is False
