"""What may be a slip is said, and what is none is not."""

import pytest

from ecg_gnn.tabular.noticing import notice_slips
from ecg_gnn.tabular.tables import Table

CLASSES = {"a": 30, "b": 10}
NUMBERS = [str(row) for row in range(39)]


def slips(cells, classes=CLASSES):
    return notice_slips(Table("t", {"age": cells}), ["age"], classes, "kind")


@pytest.mark.parametrize(
    "cells",
    [
        [*NUMBERS, "40"],
        [*NUMBERS, ""],
        [*NUMBERS[:30], *["forty"] * 10],  # three in four are numbers: a code perhaps
        ["red", "blue"] * 20,
        [""] * 40,
    ],
)
def test_nothing_to_notice(cells):
    assert slips(cells) == []


def test_a_column_that_is_nearly_numbers():
    (note,) = slips([*NUMBERS[:3], "forty", *NUMBERS[3:], ""])
    assert note == (
        "'age' is not read as numbers: 39 of 40 values are, but not 'forty' in row 4 "
        "(mend it, or empty it)"
    )


def test_rare_classes():
    (note,) = slips(NUMBERS, {"a": 3, "b": 2})
    assert note.startswith("1 of 2 classes have fewer than 3 nodes")
    assert "('b')" in note
    assert "is 'kind' not the column of classes?" in note
    (note,) = slips(NUMBERS, {str(age): 1 for age in range(20)})
    assert note.startswith("20 of 20 classes have")
    assert "('0', '1', '2' and 17 more)" in note


def test_classes_that_look_alike():
    (note,) = slips(NUMBERS, {"Retail": 9, "bank": 9, "retail": 9})
    assert "such as 'Retail' and 'retail'" in note
    assert slips(NUMBERS, {"retail": 9, "retail  trade": 9}) == []
    assert slips(NUMBERS, {"retail trade": 9, "Retail  trade": 9})
