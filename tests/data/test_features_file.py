"""Graphs whose features lie in a file of their own."""

import json
import os
import pickle

import numpy as np
import pytest
import torch

from ecg_gnn.data import graph_checks, load_dataset, make_dataset
from ecg_gnn.system.checks import InputError
from small_runs import ring_arrays

NAME = "big.node_features.npy"


@pytest.fixture
def graph(tmp_path):
    """A graph in two files."""
    arrays = ring_arrays()
    x = arrays.pop("node_features").astype(np.float32)
    np.savez(tmp_path / "big.npz", **arrays)
    np.save(tmp_path / NAME, x)
    return tmp_path / "big.npz", x


def test_features_beside_an_archive(graph):
    path, x = graph
    found = load_dataset(str(path))
    assert np.array_equal(found.x.numpy(), x)
    assert found.features_file.path.name == NAME
    whole = make_dataset(
        name="big", x=x, y=found.y, edges=ring_arrays()["edges"], num_splits=1
    )
    assert whole.features_file is None
    assert torch.equal(whole.edge_index, found.edge_index)


def test_features_in_a_graph_folder(tmp_path, graph):
    _, x = graph
    folder = tmp_path / "folder"
    folder.mkdir()
    manifest = {"format": "ecg-gnn graph", "version": 1, "directed": False}
    manifest["classes"] = ["no", "yes"]
    (folder / "graph.json").write_text(json.dumps(manifest))
    arrays = ring_arrays(node_ids=np.array([f"n{i}" for i in range(12)]))
    del arrays["node_features"]
    np.savez(folder / "graph.npz", **arrays)
    np.save(folder / "node_features.npy", x)
    found = load_dataset(str(folder))
    assert np.array_equal(found.x.numpy(), x)
    assert found.features_file.path == folder / "node_features.npy"


def test_checksum_is_of_both_files(graph):
    path, x = graph
    before = load_dataset(str(path)).sha256
    assert load_dataset(str(path)).sha256 == before
    np.save(path.with_name(NAME), x + 1)
    assert load_dataset(str(path)).sha256 != before


def test_a_mapped_array_of_ones_own(graph):
    path, x = graph
    arrays = ring_arrays()
    found = make_dataset(
        name="own",
        x=np.load(path.with_name(NAME), mmap_mode="r"),
        y=arrays["node_labels"],
        edges=arrays["edges"],
        num_splits=1,
    )
    assert np.array_equal(found.x.numpy(), x)
    assert found.features_file is not None


def test_another_process_opens_the_file_itself(graph):
    found = load_dataset(str(graph[0]))
    there = pickle.loads(pickle.dumps(found))
    assert torch.equal(there.x, found.x)
    os.truncate(graph[0].with_name(NAME), 200)
    with pytest.raises(InputError, match="the file was cut short"):
        pickle.loads(pickle.dumps(found))


# --- What is refused ------------------------------------------------------------------


def test_a_file_that_is_cut_short(graph):
    os.truncate(graph[0].with_name(NAME), 200)
    with pytest.raises(InputError, match=rf"{NAME} must have the 144 bytes of"):
        load_dataset(str(graph[0]))


def test_features_in_both_places(graph):
    np.savez(graph[0], **ring_arrays())
    message = rf"'node_features' must be in it or in {NAME} \(got both\)"
    with pytest.raises(InputError, match=message):
        load_dataset(str(graph[0]))


def test_features_in_neither(graph):
    graph[0].with_name(NAME).unlink()
    with pytest.raises(InputError, match=r"arrays missing: \['node_features'\]"):
        load_dataset(str(graph[0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x.astype(np.float64), r"must be float32 in C order .*float64\)"),
        (lambda x: x[:-1], r"'node_labels' must be one label per node"),
        (lambda x: x[:, 0], r"'node_features' must be \[N, F\]"),
        (
            lambda x: np.where(np.arange(12)[:, None] == 7, np.float32(np.nan), x),
            r"must be finite .* is nan at row 1, column 0\), counted from row 6",
        ),
    ],
)
def test_features_that_do_not_fit(graph, change, message, monkeypatch):
    monkeypatch.setattr(graph_checks, "_CELLS_AT_ONCE", 9)  # three rows
    path, x = graph
    np.save(path.with_name(NAME), change(x))
    with pytest.raises(InputError, match=message):
        load_dataset(str(path))
