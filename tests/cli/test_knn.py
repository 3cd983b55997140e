"""``ecg-gnn knn``, and ``--knn`` of the other verbs."""

import json

import numpy as np
import pytest
import torch

from ecg_gnn.evolve import knn_graph
from small_runs import BOARD, RUN

KNN = ["knn", "--embeddings", "z.npy", "--out", "edges.npy"]


@pytest.fixture
def z(tmp_path):
    rows = torch.randn(200, 6, generator=torch.Generator().manual_seed(0)).round()
    np.save(tmp_path / "z.npy", rows.numpy())
    return rows


def written(folder):
    return torch.from_numpy(np.load(folder / "edges.npy"))


@pytest.mark.parametrize("memory", [[], ["--memory", "0.0001"]])
def test_writes_the_graph(ecg_gnn, tmp_path, z, memory):
    options = ["--k", 4, "--similarity", "euclidean", "--self-loops", "within-k"]
    status, out, err = ecg_gnn(*KNN, *options, "--symmetric", "--seed", 3, *memory)
    assert status == 0, err
    want = knn_graph(
        z, 4, metric="euclidean", self_loops="within_k", symmetric=True, seed=3
    )
    assert torch.equal(written(tmp_path), want)
    assert f"{want.size(1):,} edges of 200 nodes in edges.npy (exact)" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.npy", "z.npy"]


def test_a_flag_of_earlier_versions_is_still_taken(ecg_gnn, z):
    assert ecg_gnn(*KNN, "--patience", 5)[0] == 0
    assert "--patience" not in ecg_gnn("knn", "--help")[1]


def test_self_loops_only(ecg_gnn, tmp_path, z):
    assert ecg_gnn(*KNN, "--self-loops", "only")[0] == 0
    assert torch.equal(written(tmp_path), torch.arange(200).expand(2, -1))


def test_approximate_graphs_tell_their_recall(ecg_gnn, z):
    pytest.importorskip("faiss")
    found = json.loads(ecg_gnn(*KNN, "--knn", "ivf", "--json")[1])
    assert found["method"] == "ivf"
    assert 0.9 < found["recall"] <= 1
    assert "of the true neighbours)" in ecg_gnn(*KNN, "--knn", "ivf")[1]


REFUSED = {
    "--out edges.txt": "'out' must be an .npy file (got 'edges.txt')",
    "--out z.npy": "'out' must be another file than 'z.npy'",
    "--embeddings nowhere.npy": "nowhere.npy: cannot be read (No such file",
    "--k 200": "'k' must be in [1, 199] (got 200)",
    "--knn=fast": "'knn' must be one of ['auto', 'exact', 'ivf', 'hnsw'] (got",
    "--memory 0": "'memory' must be in [",
    "--similarity same": "error: 'similarity' must be one of",
}


@pytest.mark.parametrize("words", REFUSED)
def test_refused(refused, z, words):
    assert REFUSED[words] in refused(*KNN, *words.split())


def test_bad_rows_are_named(refused, tmp_path, z):
    z[7, 2] = torch.nan
    np.save(tmp_path / "z.npy", z.numpy())
    assert "NaN or infinity in row 7" in refused(*KNN)


def test_a_file_that_was_cut_off(refused, tmp_path, z):
    path = tmp_path / "z.npy"
    path.write_bytes(path.read_bytes()[:-100])
    assert "z.npy must have the 4800 bytes of its shape" in refused(*KNN)


def test_run_and_homophily_show_the_recall(ecg_gnn):
    pytest.importorskip("faiss")
    options = ["--knn", "ivf", "--embedding", "features"]
    status, out, err = ecg_gnn(*RUN, "--splits", "0", *options)
    assert status == 0, err
    assert "kNN recall" in out
    assert "ECG (features), approximate" in out
    shown = ["homophily", "--dataset", BOARD, "--k", 3, *options]
    assert "kNN recall" in ecg_gnn(*shown)[1]
    found = json.loads(ecg_gnn(*shown, "--json")[1])
    assert 0.9 < found["evolved"]["knn_recall"] <= 1
    assert "knn_recall" not in found["graph"]
