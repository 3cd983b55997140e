"""Every way a file can be wrong gets one line that names the file and the array."""

import numpy as np
import pytest

from ecg_gnn.data.graph_storage import read_npz
from ecg_gnn.system.checks import InputError


def set_at(key, index, value):
    def change(arrays):
        arrays[key] = np.array(arrays[key])
        arrays[key][index] = value

    return change


def put(key, make):
    def change(arrays):
        arrays[key] = make(arrays[key])

    return change


def drop(*keys):
    def change(arrays):
        for key in keys:
            del arrays[key]

    return change


def untrained_class(arrays):
    """Class 1 is exactly what does not train."""
    for key in ("train_masks", "val_masks", "test_masks"):
        arrays[key] = arrays[key][:1]
    arrays["node_labels"] = (~arrays["train_masks"][0]).astype(np.int64)


def one_class_in_validation(arrays):
    arrays["val_masks"] = arrays["val_masks"] & (arrays["node_labels"] == 0)


def one_class_in_test(arrays):
    arrays["test_masks"] = arrays["test_masks"] & (arrays["node_labels"] == 1)


CASES = {
    "no edges": (drop("edges"), r"arrays missing: \['edges'\] \(the file has \["),
    "some masks": (drop("val_masks"), r"arrays missing: \['val_masks'\]"),
    "text features": (
        put("node_features", lambda x: x.astype(str)),
        r"'node_features' must be an array of numbers \(got dtype <U",
    ),
    "complex features": (
        put("node_features", lambda x: x * 1j),
        r"'node_features' must be an array of numbers \(got dtype complex64\)",
    ),
    "flat features": (put("node_features", np.ravel), r"\[N, F\].*\(got shape \[72\]"),
    "no nodes": (put("node_features", lambda x: x[:0]), r"N >= 1.*got shape \[0, 3\]"),
    "no features": (put("node_features", lambda x: x[:, :0]), r"got shape \[24, 0\]"),
    "nan": (
        set_at("node_features", (5, 2), np.nan),
        r"must be finite.*got 1 NaN.*first is nan at row 5, column 2\)",
    ),
    "infinities": (
        set_at("node_features", (slice(3, 5), 1), -np.inf),
        r"got 2 NaN or infinite values, the first is -inf at row 3, column 1",
    ),
    "beyond float32": (
        put("node_features", lambda x: np.full(x.shape, 1e300)),
        r"must be finite in float32 \(got 72 .* first is 1e\+300",
    ),
    "short labels": (
        put("node_labels", lambda y: y[:-1]),
        r"'node_labels' must be one label per node, shape \[24\] \(got shape \[23\]\)",
    ),
    "float labels": (
        put("node_labels", lambda y: y + 0.5),
        r"'node_labels' must be an array of integers \(got dtype float64\)",
    ),
    "negative label": (
        set_at("node_labels", 4, -7),
        r"must not be negative \(got -7 at node 4\)",
    ),
    "absent class": (
        put("node_labels", lambda y: y * 2),
        r"every class present \(got labels up to 2, but no node of class 1\)",
    ),
    "absurd label": (
        set_at("node_labels", 0, 2**62),
        r"got labels up to 4611686018427387904, but no node of class 2",
    ),
    "one class": (
        put("node_labels", np.zeros_like),
        r"at least 2 classes \(got only class 0\)",
    ),
    "transposed edges": (
        put("edges", np.transpose),
        r"'edges' must be \[E, 2\].*\(got shape \[2, 40\]\)",
    ),
    "float edges": (
        put("edges", lambda e: e.astype(float)),
        r"'edges' must be an array of integers",
    ),
    "edge too high": (
        set_at("edges", (6, 1), 24),
        r"nodes in \[0, 23\] \(got 24 in row 6\)",
    ),
    "edge too low": (set_at("edges", (0, 0), -1), r"got -1 in row 0"),
    "masks transposed": (
        put("train_masks", np.transpose),
        r"'train_masks' must be \[S, N\] = \[S, 24\].*\(got shape \[24, 2\]\)",
    ),
    "flat mask": (put("val_masks", lambda m: m[0]), r"'val_masks' must be \[S, N\]"),
    "no splits": (put("test_masks", lambda m: m[:0]), r"got shape \[0, 24\]"),
    "float masks": (
        put("val_masks", lambda m: m.astype(float)),
        r"'val_masks' must be an array of booleans \(got dtype float64\)",
    ),
    "index masks": (
        put("val_masks", lambda m: m * 2),
        r"'val_masks' must be booleans \(got 2 at split 0, node 4\)",
    ),
    "fewer test splits": (
        put("test_masks", lambda m: m[:1]),
        r"same number of splits \(got 2 train, 2 val, 1 test\)",
    ),
    "empty train": (set_at("train_masks", 1, False), r"'train_masks'.*in split 1\)"),
    "empty val": (set_at("val_masks", 0, False), r"'val_masks'.*none in split 0\)"),
    "empty test": (set_at("test_masks", 1, False), r"'test_masks'.*in split 1\)"),
    "overlap": (
        set_at("test_masks", (1, slice(None)), True),
        r"must not overlap \(got node 2 in two of them in split 1\)",
    ),
    "class not trained": (
        untrained_class,
        r"'train_masks' must have every class.*no node of class 1 in split 0",
    ),
    "auc undefined in val": (one_class_in_validation, r"'val_masks'.*of class 1"),
    "auc undefined in test": (one_class_in_test, r"'test_masks'.*of class 0"),
    "directed is no flag": (
        lambda arrays: arrays.update(directed=np.arange(2)),
        r"'directed' must be one boolean \(got int64 \[2\]\)",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_malformed_file(arrays, save, case):
    change, message = CASES[case]
    change(arrays)
    path = save(arrays)
    with pytest.raises(InputError, match=message) as caught:
        read_npz(path, "toy")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_class_too_small_to_split_may_miss_training(arrays_of, save, size):
    arrays = arrays_of(num_splits=1)
    outside = np.flatnonzero(arrays["test_masks"][0])[:size]
    arrays["node_labels"][outside] = 2
    path = save(arrays)
    if size < 3:
        assert read_npz(path, "toy").num_classes == 3
    else:
        with pytest.raises(InputError, match="no node of class 2 in split 0"):
            read_npz(path, "toy")


def test_integer_types_are_accepted(arrays, save):
    arrays["node_labels"] = arrays["node_labels"].astype(np.uint8)
    arrays["edges"] = arrays["edges"].astype(">i4")
    arrays["node_features"] = np.asfortranarray(arrays["node_features"], ">f8")
    arrays["train_masks"] = arrays["train_masks"].astype(np.uint8)
    assert read_npz(save(arrays), "toy").num_nodes == 24
