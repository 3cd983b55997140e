"""Numbers as people write them, told from codes, lists and dates."""

import numpy as np
import pytest

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions
from ecg_gnn.tabular.columns import Table, decimal_mark, plain_numbers
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline, fit_features
from ecg_gnn.tabular.labels import read_labels

WRITTEN = {
    "dollars": (["$1,234.50", "$8", "-$7.25"], [1234.5, 8, -7.25]),
    "euros": (["1.234,50 €", "8 €", "-7,25 €"], [1234.5, 8, -7.25]),
    "percent": (["85%", "7.5 %", "0%"], [85, 7.5, 0]),
    "thousands": (["1,234", "12,345,678", "99"], [1234, 12345678, 99]),
    "decimal commas": (["0,125", "1,234", "-3"], [0.125, 1.234, -3]),
    "spaces": (["1\xa0234,5", "12\u202f345"], [1234.5, 12345]),
    "apostrophes": (["1'234.5", "12’345"], [1234.5, 12345]),
    "gaps": (["1,5", None, "n/a", ""], [1.5, None, None, None]),
}
OTHERS = {
    "plain": ["1.5", "2", "-3e5"],
    "codes": ["00123", "00456"],
    "lists": ["1,2,3", "4"],
    "two lists": ["12 55 90", "12"],
    "dates": ["31.05.2024", "01.06.2024"],
    "two currencies": ["$1.50", "€2.50"],
    "both marks": ["1,5", "2.5 %", "7,25"],
    "names": ["$1.50", "cheap"],
    "nothing": [None, ""],
}


@pytest.mark.parametrize("case", WRITTEN)
def test_what_is_a_number(case):
    cells, expected = WRITTEN[case]
    mark = decimal_mark(cells)
    assert mark is not None
    read = plain_numbers(cells, mark)
    pairs = [(c, e) for c, e in zip(read, expected, strict=True) if e is not None]
    assert [float(cell) for cell, _ in pairs] == [number for _, number in pairs]


@pytest.mark.parametrize("case", OTHERS)
def test_what_is_none(case):
    assert decimal_mark(OTHERS[case]) is None


def prices(*cells):
    return Table(
        "t.csv", {"price": list(cells), "kind": ["a", "b"] * (len(cells) // 2)}
    )


def test_new_rows_are_read_as_the_old_ones_were():
    table = prices("0,5", "2,25", "3", "1,75")
    pipeline = fit_features(table, ["price"], ImportOptions(label="", encoding="raw"))
    assert "'2,25' is read as 2.25" in pipeline.decisions["price"]
    again = FeaturePipeline.from_state("model", *pipeline.state())
    # Alone, 1,234 would be more than a thousand.
    assert again.transform(prices("1,234", "4")).tolist() == [
        [np.float32(1.234)],
        [4.0],
    ]
    with pytest.raises(InputError, match="'price' must be numbers"):
        again.transform(prices("$1.5", "4"))


def test_the_user_may_keep_the_cells():
    table = prices("5%", "7%", "5%", "7%")
    kept = fit_features(
        table, ["price"], ImportOptions(label="", kinds={"price": "categorical"})
    )
    assert kept.names == ["price=5%", "price=7%"]


@pytest.mark.parametrize("marks", [{"price": ";"}, {"size": ","}, {"price": []}, 7])
def test_damaged_marks_are_refused(marks):
    plain, arrays = fit_features(
        prices("1,5", "2"), ["price"], ImportOptions(label="")
    ).state()
    with pytest.raises(InputError, match="damaged"):
        FeaturePipeline.from_state("model", plain | {"decimal_marks": marks}, arrays)


def test_a_label_of_amounts_is_a_regression_and_few_shares_are_classes():
    labels = read_labels(prices(*(f"${place},000" for place in range(1, 41))), "price")
    assert labels.targets is not None
    assert labels.targets.max() == 40_000
    shares = read_labels(prices("5%", "10%", "5%", "10%"), "price")
    assert shares.classes == ("10%", "5%")
