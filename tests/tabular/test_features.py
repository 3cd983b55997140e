"""Columns to numbers: scikit-learn's, and again from plain values."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions, feature_pipeline
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline

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


def fit_features(table, columns, **options):
    options = ImportOptions(label="", **options)
    return feature_pipeline.fit_features(table, columns, options)


def rebuilt(pipeline):
    state, arrays = pipeline.state()
    return FeaturePipeline.from_state("s", json.loads(json.dumps(state)), arrays)


def test_as_scikit_learn_computes_it():
    table = Table("t", COLUMNS)
    pipeline = fit_features(table, ["age", "size", "city", "text"], encoding="standard")
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
    many = {"name": [f"person{i}" for i in range(60)], "n": np.arange(60.0) ** 2}
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
    table = Table("t", {"c": values})
    every = fit_features(table, ["c"])
    assert len(every.names) == 200
    assert every.decisions == {}
    pipeline = fit_features(table, ["c"], max_categories=64)
    assert len(pipeline.names) == 65
    assert pipeline.names[-1] == "c=(other)"
    assert pipeline.decisions == {
        "c": "136 of 200 categories share one feature (with up to 5 nodes; "
        "--max-categories 0 keeps them)"
    }
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


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("columns", ["age", "age"]),
        ("categories", [["x", "x"]]),
        ("categories", ["xyz"]),
        ("words", ["a", 1]),
        ("words", "words"),
    ],
)
def test_names_that_are_not_distinct_texts_are_refused(field, value):
    table = Table("t", COLUMNS)
    state, arrays = fit_features(table, ["age", "city", "text"]).state()
    block = next(each for each in state["blocks"] if field in each)
    block[field] = value
    with pytest.raises(InputError, match="the feature pipeline is damaged"):
        FeaturePipeline.from_state("s", state, arrays)


# --- Numbers --------------------------------------------------------------------------


def test_quantiles_are_those_of_a_normal_distribution():
    values = np.random.default_rng(0).lognormal(size=2000)
    table = Table("t", {"v": values})
    x = fit_features(table, ["v"]).transform(table)[:, 0]
    ranks = (np.argsort(np.argsort(values)) + 0.5) / 2000
    inner = (ranks > 0.01) & (ranks < 0.99)
    assert np.allclose(x[inner], ndtri(ranks)[inner], atol=0.05)
    assert np.abs(x).max() < 3


def test_equal_numbers_get_the_middle_of_their_ranks():
    table = Table("t", {"v": ["0"] * 60 + [f"{i}.5" for i in range(40)]})
    x = fit_features(table, ["v"]).transform(table)[:, 0]
    assert abs(x[0] - ndtri(0.3)) < 0.01


def test_what_is_missing_is_in_the_middle_and_marked():
    table = Table("t", {"v": ["1.5", "", "2.5", "70"]})
    pipeline = fit_features(table, ["v"])
    assert pipeline.names == ["v", "v is missing"]
    assert pipeline.transform(table)[1].tolist() == [0, 1]


@pytest.mark.parametrize("encoding", ["quantile", "standard", "raw"])
@pytest.mark.parametrize("cells", [["1", "0", "1"], ["yes", "NO", "yes"]])
def test_flags_stay_as_they_are(cells, encoding):
    table = Table("t", {"f": cells})
    pipeline = fit_features(table, ["f"], encoding=encoding)
    assert pipeline.transform(table)[:, 0].tolist() == [1, 0, 1]
    assert pipeline.kinds() == {"f": "numeric"}


def test_raw_numbers():
    table = Table("t", {"v": ["1.5", "-3", "1e9"], "f": ["0", "1", "1"]})
    for options in ({"scale": False}, {"encoding": "raw"}):
        x = fit_features(table, ["v", "f"], **options).transform(table)
        assert x.tolist() == [[1.5, 0], [-3, 1], [1e9, 1]]


def test_other_words_for_missing():
    columns = {
        "n": ["0", "1.5", "-1", "7"],
        "x": np.array([0.0, 1.5, 2.5, 3.5]),
        "c": ["a", "Unknown", "a", "b"],
    }
    table = Table("t", columns)
    pipeline = fit_features(table, list(columns), missing=["0", "-1", "unknown"])
    assert pipeline.names[:4] == ["n", "x", "n is missing", "x is missing"]
    assert "c=(missing)" in pipeline.names
    again = rebuilt(pipeline)
    assert again.missing == ("0", "-1", "unknown")
    x = again.transform(table)
    assert x[:, 2].tolist() == [1, 0, 1, 0]
    assert x[:, 3].tolist() == [1, 0, 0, 0]
    assert again.unseen(Table("t", columns | {"c": ["unknown"] * 4})) == {}


def test_few_whole_numbers_are_read_twice():
    table = Table("t", {"grade": list("12345") * 8})
    pipeline = fit_features(table, ["grade"])
    assert pipeline.names == ["grade", *(f"grade={i}" for i in range(1, 6))]
    assert pipeline.kinds() == {"grade": "ordinal"}
    assert "--numeric grade reads them as numbers" in pipeline.decisions["grade"]
    assert [*rebuilt(pipeline).kinds()] == ["grade"]


# --- Categories, sets, dates, text ----------------------------------------------------


def test_categories_of_one_node_go_together():
    table = Table("t", {"c": ["a", "a", "b", "b", "", "x", "y"]})
    pipeline = fit_features(table, ["c"])
    assert pipeline.names == ["c=(missing)", "c=a", "c=b", "c=(other)"]
    said = "2 of 5 categories share one feature (with one node each)"
    assert pipeline.decisions == {"c": said}
    new = pipeline.transform(Table("t", {"c": ["never seen"]}))
    assert new.tolist() == [[0, 0, 0, 1]]


def test_sets():
    cells = ["7 12 7", "12 9 100 31", "", *["12 9"] * 9]
    table = Table("t", {"games": cells})
    pipeline = rebuilt(fit_features(table, ["games"]))
    assert pipeline.names == ["games:12", "games:9", "games (count)"]
    x = pipeline.transform(table)
    assert np.allclose(x[:3, 0], [2**-0.5, 0.5, 0])
    assert np.allclose(x[:3, 1], [0, 0.5, 0])
    assert x[2, 2] < x[0, 2] < x[1, 2]
    (raw,) = fit_features(table, ["games"], scale=False).transform(table)[1:2]
    assert raw[2] == 4
    said = fit_features(table, ["games"], max_categories=1).decisions["games"]
    assert "4 of 5 elements have no feature (with up to 10 nodes; --max-cat" in said


def test_a_column_may_be_said_to_have_sets():
    table = Table("t", {"c": ["red,old", "red", "new"]})
    pipeline = fit_features(table, ["c"], kinds={"c": "set"})
    assert pipeline.names == ["c:red", "c (count)"]


def test_dates():
    table = Table("t", {"d": ["2024-05-01", "2024-05-03 12:00", "", "24.12.2023"]})
    pipeline = rebuilt(fit_features(table, ["d"]))
    x = pipeline.transform(table)
    assert len(pipeline.names) == x.shape[1] == 2 + 12 + 7
    found = [dict(zip(pipeline.names, row, strict=True)) for row in x]
    assert found[0]["d month=5"] == found[0]["d Wed"] == found[1]["d Fri"] == 1
    assert found[3]["d month=12"] == found[3]["d Sun"] == 1
    assert [row["d is missing"] for row in found] == [0, 0, 1, 0]
    assert found[3]["d"] < found[0]["d"] < found[1]["d"]
    assert x[2, 2:].sum() == x[2, 0] == 0
    raw = fit_features(table, ["d"], encoding="raw").transform(table)[:, 0]
    assert raw[1] - raw[0] == 2.5
    with pytest.raises(InputError, match=r"'d' must be dates .*'soon' in row 1"):
        pipeline.transform(Table("new", {"d": ["soon"]}))


def test_words_that_are_left_out_are_said():
    table = Table("t", COLUMNS)
    assert fit_features(table, ["text"]).decisions == {}
    pipeline = fit_features(table, ["text"], max_words=3)
    assert pipeline.decisions["text"].endswith(
        "words, the rarest, have no feature (--max-words 0 keeps all)"
    )
    assert len(pipeline.names) == 3
    assert len(fit_features(table, ["text"], max_words=0).names) > 3
    hashed = fit_features(table, ["text"], hashed=True, max_words=16)
    assert len(hashed.names) == 16


ROWS = st.lists(
    st.tuples(
        st.floats(-1e6, 1e6).map(str) | st.just(""),
        st.integers(0, 40).map(str),
        st.sampled_from(["x", "y", "z", ""]),
        st.lists(st.sampled_from("1234567"), max_size=4).map(" ".join),
        st.dates().map(str) | st.just(""),
    ),
    min_size=2,
    max_size=30,
)
NAMES = ("number", "code", "city", "set", "date")
SAID = {"number": "numeric", "code": "ordinal", "set": "set", "date": "date"}


@settings(max_examples=60, deadline=None)
@given(rows=ROWS, encoding=st.sampled_from(["quantile", "standard", "raw"]))
def test_new_rows_are_read_as_the_old_ones(rows, encoding):
    columns = {name: [row[i] for row in rows] for i, name in enumerate(NAMES)}
    pipeline = fit_features(Table("t", columns), NAMES, kinds=SAID, encoding=encoding)
    x = pipeline.transform(Table("t", columns))
    assert np.isfinite(x).all()
    last = {name: cells[-1:] for name, cells in columns.items()}
    new = rebuilt(pipeline).transform(Table("new", last))
    assert np.array_equal(new[0], x[-1])


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


def test_a_column_that_is_named_twice_is_read_once():
    table = Table("t", {"size": ["1.5", "2", "7"]})
    pipeline = rebuilt(fit_features(table, ["size", "size"]))
    assert pipeline.names == ["size"]
