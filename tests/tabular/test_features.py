"""Columns to numbers: scikit-learn's, and again from plain values."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.feature_blocks import MAX_CATEGORIES
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline, fit_features

COLUMNS = {
    "age": ["1", "2.5", "", "-4e1", "7", "7"],
    "size": np.array([1.0, 2.0, 3.0, np.nan, 5.0, 5.0]),
    "city": ["x", "y", "NA", "x", "x", "y"],
    "text": [
        "a red old house",
        "a blue new house",
        "",
        "red red red wine",
        "the old man sat",
        "Old RED house here",
    ],
    "same": ["k"] * 6,
    "empty": [""] * 6,
    "name": [f"person{i}" for i in range(6)],
}


def rebuilt(pipeline):
    state, arrays = pipeline.state()
    return FeaturePipeline.from_state("s", json.loads(json.dumps(state)), arrays)


def test_as_scikit_learn_computes_it():
    table = Table("t", COLUMNS)
    pipeline = fit_features(table, ["age", "size", "city", "text"])
    numbers = np.array(
        [[1, 1], [2.5, 2], [np.nan, 3], [-40, np.nan], [7, 5], [7, 5]], dtype=float
    )
    filled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    cities = np.array([["x"], ["y"], [""], ["x"], ["x"], ["y"]], dtype=object)
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), [0]))
    words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)
    expected = np.hstack(
        [
            filled.fit_transform(numbers),
            np.isnan(numbers),
            encode.fit_transform(cities),
            words.fit_transform(COLUMNS["text"]).toarray(),
        ]
    )
    found = pipeline.transform(table)
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-6)
    assert len(pipeline.names) == found.shape[1]
    assert np.array_equal(rebuilt(pipeline).transform(table), found)


def test_what_tells_nothing_is_left_out():
    pipeline = fit_features(Table("t", COLUMNS), list(COLUMNS))
    assert pipeline.dropped == {"same": "constant", "empty": "no values"}
    many = {"name": [f"person{i}" for i in range(60)], "n": np.arange(60.0)}
    dropped = fit_features(Table("t", many), ["name", "n"]).dropped
    assert dropped == {"name": "a different value in nearly every row"}


def test_new_values():
    table = Table("t", COLUMNS)
    pipeline = rebuilt(fit_features(table, ["age", "city", "text"]))
    new = Table("new", {"age": [""], "city": ["never seen"], "text": ["unknown words"]})
    row = dict(zip(pipeline.names, pipeline.transform(new)[0], strict=True))
    assert row["age is missing"] == 1
    assert all(value == 0 for key, value in row.items() if key.startswith("city="))
    assert all(value == 0 for key, value in row.items() if key.startswith("text:"))
    assert pipeline.unseen(new) == {"city": ["never seen"]}
    assert pipeline.unseen(table) == {}


def test_rare_categories_go_together():
    values = [f"c{i % 200}" for i in range(1000)]
    pipeline = fit_features(
        Table("t", {"c": values}), ["c"], kinds={"c": "categorical"}
    )
    assert len(pipeline.names) == MAX_CATEGORIES + 1
    assert pipeline.names[-1] == "c=(other)"
    x = rebuilt(pipeline).transform(Table("t", {"c": values}))
    assert (x.sum(1) == 1).all()
    assert pipeline.unseen(Table("t", {"c": ["new"]})) == {}  # or a rare one


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"age": ["1"], "city": ["x"]}, r"missing: \['text'\]"),
        (
            {"age": ["old"], "city": ["x"], "text": [""]},
            "'age' must be numbers .*'old'",
        ),
        ({"age": ["inf"], "city": ["x"], "text": [""]}, "'age' must be numbers up to"),
    ],
)
def test_columns_that_do_not_fit_are_named(columns, message):
    pipeline = fit_features(Table("t", COLUMNS), ["age", "city", "text"])
    with pytest.raises(InputError, match=message):
        pipeline.transform(Table("new", columns))


CHANGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_state_is_refused_or_works(data):
    table = Table("t", COLUMNS)
    state, arrays = fit_features(table, ["age", "city", "text"]).state()
    block = data.draw(st.sampled_from(state["blocks"]))
    block[data.draw(st.sampled_from(sorted(block)))] = data.draw(CHANGES)
    with contextlib.suppress(InputError):
        FeaturePipeline.from_state("s", state, arrays).transform(table)


CELLS = st.text(max_size=12) | st.floats(allow_nan=True).map(str)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=2, max_size=12))
def test_any_cells_become_finite_numbers_or_one_line(rows):
    with contextlib.suppress(InputError):
        table = Table("t", {"a": [a for a, _ in rows], "b": [b for _, b in rows]})
        pipeline = fit_features(table, ["a", "b"])
        x = pipeline.transform(table)
        assert np.isfinite(x).all()
        assert np.array_equal(rebuilt(pipeline).transform(table), x)
