"""Warnings of likely mistakes in a table, and silence where there are none."""

import numpy as np
import pytest

from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.import_report import import_warnings

CLASSES = {"a": 30, "b": 10}
NO_EDGES = np.empty((0, 2), dtype=np.int64)
NUMBERS = [str(row) for row in range(39)]


def warnings_for(cells, classes=CLASSES, labels=()):
    columns = {"age": cells, "kind": [*labels, *[""] * (len(cells) - len(labels))]}
    return import_warnings(Table("t", columns), ["age"], classes, "kind", NO_EDGES)


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
def test_nothing_to_warn_of(cells):
    assert warnings_for(cells) == []


def test_a_column_that_is_nearly_numbers():
    (note,) = warnings_for([*NUMBERS[:3], "forty", *NUMBERS[3:], ""])
    assert note == (
        "'age' is not read as numbers: 39 of 40 values are, but not 'forty' in row 4 "
        "(mend it, or empty it)"
    )


def test_rare_classes():
    (note,) = warnings_for(NUMBERS, {"a": 3, "b": 2})
    assert note.startswith("1 of 2 classes have fewer than 3 nodes")
    assert "('b')" in note
    assert "is 'kind' not the column of classes?" in note
    (note,) = warnings_for(NUMBERS, {str(age): 1 for age in range(20)})
    assert note.startswith("20 of 20 classes have")
    assert "('0', '1', '2' and 17 more)" in note


def test_classes_that_read_like_missing_values():
    (note,) = warnings_for(NUMBERS, {"Drama": 30, "Unknown": 10})
    assert note == (
        "'kind' has a class 'Unknown' (10 nodes), which reads like a missing value: if "
        "it is one, --missing Unknown makes these nodes unlabelled"
    )
    (note,) = warnings_for(NUMBERS, {"Drama": 30, "?": 10})
    assert "--missing '?'" in note


def test_classes_that_look_alike():
    (note,) = warnings_for(NUMBERS, {"Retail": 9, "bank": 9, "retail": 9})
    assert "such as 'Retail' and 'retail'" in note
    assert warnings_for(NUMBERS, {"retail": 9, "retail  trade": 9}) == []
    assert warnings_for(NUMBERS, {"retail trade": 9, "Retail  trade": 9})


def test_strong_imbalance():
    (note,) = warnings_for(NUMBERS, {"fraud": 12, "fine": 5000})
    assert note.startswith("class 'fraud' has 12 nodes, the largest class 5000 (417 ")
    assert "--metric average-precision" in note
    assert warnings_for(NUMBERS, {"fraud": 60, "fine": 5000}) == []
    assert warnings_for(NUMBERS, {}) == []


@pytest.mark.parametrize(
    ("pairs", "note"),
    [
        ([[0, 1], [1, 0], [1, 2]], "2 of 3 edges are there both ways"),
        ([[0, 1], [1, 2], [1, 2], [2, 2]], None),
        ([[0, 1], [1, 0]], None),
        ([], None),
    ],
)
def test_edges_that_may_have_a_direction(pairs, note):
    table, edges = Table("t", {}), np.array(pairs, dtype=np.int64).reshape(-1, 2)
    notes = import_warnings(table, [], CLASSES, "kind", edges)
    assert [one[:32] for one in notes] == ([] if note is None else [note])


@pytest.mark.parametrize("size", [20, 3000])
def test_the_label_under_another_name(size):
    labels = ["a", "b", "a", "a"] * (size // 4)
    cells = [{"a": "1", "b": "2"}[label] for label in labels]
    (note,) = warnings_for([*cells, "2", ""], labels=labels)
    assert note.startswith("each value of 'age' comes with one class of 'kind'")
    assert note.endswith("--drop age")
    assert warnings_for(["2", *cells[1:]], labels=labels) == []
    assert (
        warnings_for(texts := [str(row % 7) for row in range(size)], labels=labels)
        == []
    )
    assert warnings_for(texts, labels=["a"] * size) == []
    assert warnings_for(cells[:12], labels=labels[:12]) == []  # may be chance
