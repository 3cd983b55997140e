"""What follows from the rules of Minesweeper is true."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from ecg_gnn import load_dataset

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "results")
    yield
    sys.modules.pop("minesweeper_rules", None)


def line(shown, known):
    """What is deduced on a board of one row."""
    from minesweeper_rules import deduce

    size = len(shown)
    around = np.zeros((size, size), dtype=np.int64)
    for a in range(size - 1):
        around[a, a + 1] = around[a + 1, a] = 1
    return deduce(csr_array(around), np.array(shown), np.array(known)).tolist()


def test_mines_that_are_found_leave_the_rest_free():
    assert line([-1, 1, -1], [1, 0, -1]) == [1, 0, 0]


def test_as_many_open_cells_as_missing_mines_are_mines():
    assert line([-1, 2, -1], [-1, 0, -1]) == [1, 0, 1]


def test_one_thing_leads_to_another():
    assert line([-1, 1, -1, 1, -1], [1, 0, -1, 0, -1]) == [1, 0, 0, 0, 1]


def test_what_cannot_be_told_stays_open():
    assert line([-1, 1, -1], [-1, 0, -1]) == [-1, 0, -1]
    assert line([-1, -1, -1], [1, 0, -1]) == [1, 0, -1]


def test_five_or_more_says_nothing_once_five_are_found():
    from minesweeper_rules import deduce

    around = np.zeros((7, 7), dtype=np.int64)
    around[0, 1:] = around[1:, 0] = 1
    known = np.array([0, 1, 1, 1, 1, 1, -1])
    shown = np.array([5, -1, -1, -1, -1, -1, -1])
    assert deduce(csr_array(around), shown, known)[6] == -1


def test_nothing_deduced_is_wrong():
    from minesweeper_rules import ceiling

    told, right, auc = ceiling(load_dataset("minesweeper-gen"), 0)
    assert told > 0.9
    assert right == 1
    assert auc > 0.99
