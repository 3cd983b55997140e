"""Labels as classes, and as targets of a regression."""

import numpy as np
import pytest

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.labels import class_names, read_labels


def labels(cells, task="auto"):
    return read_labels(Table("t", {"y": cells}), "y", task)


def test_class_names_are_in_the_order_of_numbers():
    assert class_names(["10", None, "9", "10"]) == ("9", "10")
    assert class_names(["b", "10", "9"]) == ("10", "9", "b")
    assert class_names(["--5", "4", "-3"]) == ("--5", "-3", "4")
    assert class_names(["9" * 5000, "4"]) == ("4", "9" * 5000)


@pytest.mark.parametrize(
    ("cells", "is_regression"),
    [
        ([f"{i / 7:.3f}" for i in range(40)], True),
        ([str(i) for i in range(40)], True),
        (["1", "1.5", "2", "2.5"] * 10, False),
        ([str(i % 20) for i in range(400)], False),
        ([str(i % 70) for i in range(7000)], False),  # 1% of the rows: classes
        (["a", "b"] * 10, False),
        ([f"{i:05}" for i in range(40)], False),  # names, not numbers
        (["inf", *(f"{i}.5" for i in range(40))], False),
    ],
)
def test_the_task_is_recognised(cells, is_regression):
    assert (labels(cells).targets is not None) == is_regression


def test_five_equal_parts():
    found = labels([*(f"{i / 10}" for i in range(100)), ""])
    assert found.classes == (
        "≤ 1.9",
        "1.9 to 3.9",
        "3.9 to 5.9",
        "5.9 to 7.9",
        "> 7.9",
    )
    assert np.bincount(found.y[:-1]).tolist() == [20] * 5
    assert found.y[-1] == -1
    assert np.isnan(found.targets[-1])
    assert found.targets[3] == 0.3


def test_large_bounds_are_written_out():
    found = labels([f"{1000 * i}" for i in range(100)])
    assert found.classes[:2] == ("≤ 19,000", "19,000 to 39,000")


@pytest.mark.parametrize(
    "cells",
    [
        ["0"] * 90 + [f"{i}.5" for i in range(30)],
        ["9"] * 90 + ["1"],
        ["1"] * 90 + ["9"],
        [f"1.00000000{i}" for i in range(10)],
    ],
)
def test_equal_targets(cells):
    found = labels(cells, "regression")
    counts = np.bincount(found.y)
    assert len(found.classes) == len(set(found.classes)) == len(counts) >= 2
    assert (counts > 0).all()


def test_the_task_may_be_said():
    numbers = [f"{i}.5" for i in range(40)]
    assert labels(numbers, "classification").targets is None
    assert len(labels(numbers, "classification").classes) == 40
    with pytest.raises(InputError, match=r"'y' must be numbers .*'a' in row 1"):
        labels(["a", "b"], "regression")
