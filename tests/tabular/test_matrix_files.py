"""Graphs as sparse matrices."""

import numpy as np
import pytest
import torch
from scipy import sparse

from csv_graphs import stranger_tables, write_stranger
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions, import_files

WRITTEN = "a sparse matrix as scipy"
KIND = ImportOptions(label="kind")


def adjacency():
    """The edges that `write_stranger` writes, as a matrix."""
    _, nodes, _, edges = stranger_tables()
    number = {row[0]: place for place, row in enumerate(nodes[:-12])}
    kept = [(number[u], number[v]) for u, v in edges if u in number and v in number]
    ends = tuple(np.array(kept).T)
    return sparse.coo_array((np.ones(len(kept)), ends), shape=(138, 138))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_a_matrix_is_as_good_as_a_table(tmp_path, layout):
    write_stranger(tmp_path)
    sparse.save_npz(tmp_path / "A.npz", adjacency().asformat(layout))
    tables = import_files(tmp_path / "nodes.csv", tmp_path / "edges.csv", KIND)
    matrix = import_files(tmp_path / "nodes.csv", tmp_path / "A.npz", KIND)
    assert torch.equal(matrix.dataset.edge_index, tables.dataset.edge_index)
    assert torch.equal(matrix.dataset.x, tables.dataset.x)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"shape": np.array([9, 9])}, "a sparse matrix"),
        ({"format": np.array(b"dia")}, WRITTEN),
        ({"indices": np.array([500])}, WRITTEN),
        ({"data": np.array([b"evil"] * 3)}, "must be a sparse matrix"),
        ({"indptr": np.arange(3)}, WRITTEN),
        ({"indptr": np.r_[0, 500, np.zeros(137, dtype=int)]}, WRITTEN),
        ({"indptr": np.array([0, 2**62, -(2**63), -(2**62), *[0] * 135])}, WRITTEN),
        ({"indptr": np.zeros(139)}, WRITTEN),
        ({"format": np.arange(4)}, WRITTEN),
        ({"shape": np.array([2**62, 2**62])}, "must be a sparse matrix"),
    ],
)
def test_matrices_that_are_none(tmp_path, arrays, message):
    write_stranger(tmp_path)
    sparse.save_npz(tmp_path / "A.npz", adjacency().tocsr())
    with np.load(tmp_path / "A.npz") as saved:
        changed = dict(saved) | arrays
    np.savez(tmp_path / "A.npz", **changed)
    with pytest.raises(InputError, match=message):
        import_files(tmp_path / "nodes.csv", tmp_path / "A.npz", KIND)
