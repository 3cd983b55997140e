"""Graphs as sparse matrices."""

import contextlib
import io
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import savemat

from csv_graphs import save_ring_mat, stranger_tables, write_stranger
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular import ImportOptions, import_files, import_graph

WRITTEN = "a sparse matrix as scipy"
KIND, GENDER = ImportOptions(label="kind"), ImportOptions(label="gender")


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


def test_facebook100(tmp_path):
    save_ring_mat(tmp_path / "Reed98.mat")
    graph = import_graph(tmp_path / "Reed98.mat", GENDER)
    assert graph.classes == ("1", "2")
    assert graph.dataset.num_unlabelled == 8
    assert graph.dataset.num_edges == 24
    assert list(graph.features.kinds()) == ["status", "year"]
    assert graph.report["columns_left_out"]["dorm"] == "no values"
    assert graph.ids[:2] == ("0", "1")


def mat(tmp_path, **changed):
    ring = {"A": sparse.eye_array(24).tocsc(), "local_info": np.ones((24, 7))}
    savemat(tmp_path / "g.mat", ring | changed, do_compression=True)
    return tmp_path / "g.mat"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A": np.eye(24)}, "'A' must be a sparse matrix, 24 × 24"),
        ({"A": sparse.eye_array(9).tocsc()}, "24 × 24 as there are nodes"),
        ({"local_info": np.ones((24, 3))}, "a network of facebook100"),
        ({"local_info": "texts"}, "a network of facebook100"),
        ({"local_info": np.zeros((10**4, 7))}, "must have at most 9999 cells"),
    ],
)
def test_mat_files_that_are_refused(tmp_path, changed, message):
    path = mat(tmp_path, **changed)
    with pytest.raises(InputError) as got:
        import_graph(path, ImportOptions(label="gender", max_cells=9999))
    assert message in str(got.value)


def test_cut_mat_files(tmp_path):
    save_ring_mat(tmp_path / "g.mat")
    whole = (tmp_path / "g.mat").read_bytes()
    for length in (0, 4, 130, 140, len(whole) // 2, len(whole) - 1):
        (tmp_path / "g.mat").write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"g\.mat"):
            import_graph(tmp_path / "g.mat", GENDER)


@settings(max_examples=200, deadline=None)
@given(
    changes=st.lists(
        st.tuples(st.integers(128, 2000), st.binary(min_size=1, max_size=4)),
        min_size=1,
        max_size=3,
    ),
    compressed=st.booleans(),
)
def test_damaged_mat_files(changes, compressed):
    info = np.ones((24, 7), dtype=np.int32)
    info[:, 1], info[:, 0] = np.arange(24) % 3, np.arange(24) % 5
    ring = sparse.csc_array(np.roll(np.eye(24), 1, axis=0))
    buffer = io.BytesIO()
    savemat(buffer, {"A": ring, "local_info": info}, do_compression=compressed)
    content = bytearray(buffer.getvalue())
    for place, new in changes:
        place = place % len(content)
        content[place : place + len(new)] = new
    with TemporaryDirectory() as folder, contextlib.suppress(InputError):
        path = Path(folder, "g.mat")
        path.write_bytes(content)
        import_graph(path, GENDER)
