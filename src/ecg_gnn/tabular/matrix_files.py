"""Graphs as sparse matrices: scipy's .npz files, and MATLAB's of facebook100."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.reading import BYTES_PER_CELL, read_archive, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Column

Pairs = NDArray[np.int64]
MATRIX_SUFFIX = ".npz"

_MATRIX = "a sparse matrix as scipy.sparse.save_npz writes it (csr, csc or coo)"
_NETWORK = "a network of facebook100: a sparse matrix 'A' and 'local_info', version 5"
# What the columns of facebook100 mean; 0 is no value.
_LOCAL_INFO = (
    "status",
    "gender",
    "major",
    "second_major",
    "dorm",
    "year",
    "high_school",
)

_MAT_HEADER_BYTES = 128
_MAT_VERSION_5 = (1, 0)
_COMPRESSED = 15
_PIECE_BYTES = 1 << 20


def read_adjacency(path: Path, num_nodes: int, most: int) -> Pairs:
    """The edges of a matrix whose rows are the nodes in their order, ``[E, 2]``."""
    from scipy import sparse

    keys = ["format", "shape", "data", "indices", "indptr", "row", "col"]
    arrays = read_archive(path, keys, most=most)
    with refusing(str(path), _MATRIX):
        layout = arrays["format"].item().decode()
        shape = tuple(arrays["shape"].tolist())
        if layout == "coo":
            ends = (arrays["row"], arrays["col"])
            matrix = sparse.coo_array((arrays["data"], ends), shape=shape)
        else:
            make = {"csr": sparse.csr_array, "csc": sparse.csc_array}[layout]
            parts = (arrays["data"], arrays["indices"], arrays["indptr"])
            matrix = make(parts, shape=shape)
            matrix.check_format(full_check=True)
    return _pairs_of(str(path), matrix, num_nodes)


def read_facebook(path: Path, most: int) -> tuple[dict[str, Column], Pairs]:
    """Columns and edges of one network of facebook100 (Traud et al., 2012)."""
    from scipy.io import loadmat
    from scipy.io.matlab import matfile_version

    with refusing(str(path), _NETWORK):
        if matfile_version(str(path)) != _MAT_VERSION_5:
            raise ValueError("another version of the format")
        _check_mat_size(path, most)
        arrays = loadmat(path, variable_names=["A", "local_info"])
        adjacency, info = arrays["A"], arrays["local_info"]
        if info.ndim != 2 or info.shape[1] != len(_LOCAL_INFO):
            raise ValueError(f"local_info of shape {list(info.shape)}")
        values = np.where(info == 0, np.nan, info.astype(np.float64))
    pairs = _pairs_of(f"{path}: 'A'", adjacency, len(info))
    columns: dict[str, Column] = dict(zip(_LOCAL_INFO, values.T.copy(), strict=True))
    return columns, pairs


def _pairs_of(source: str, matrix: Any, num_nodes: int) -> Pairs:
    from scipy.sparse import issparse

    kind, shape = getattr(matrix, "dtype", np.dtype("O")), getattr(matrix, "shape", ())
    fits = issparse(matrix) and shape == (num_nodes, num_nodes)
    if not fits or kind.kind not in "biuf":
        raise InputError(
            f"{source} must be a sparse matrix of numbers, {num_nodes} × {num_nodes} "
            f"as there are nodes (got {kind} {list(shape)})"
        )
    entries = matrix.tocoo()
    ends = np.stack([entries.row, entries.col], axis=1).astype(np.int64)
    pairs: Pairs = ends[entries.data != 0]
    return pairs


def _check_mat_size(path: Path, most: int) -> None:
    """Refuse a file that would unpack to more bytes than cells may have."""
    allowed = most * BYTES_PER_CELL
    with path.open("rb") as file:
        file.seek(124)
        order = "<" if file.read(_MAT_HEADER_BYTES - 124)[2:] == b"IM" else ">"
        while len(tag := file.read(8)) == 8:
            kind, length = struct.unpack(f"{order}II", tag)
            if kind != _COMPRESSED:
                allowed -= length
                file.seek(length, 1)
            else:
                packed = zlib.decompressobj()
                content = file.read(length)
                while content and not packed.eof and allowed >= 0:
                    allowed -= len(packed.decompress(content, _PIECE_BYTES))
                    content = packed.unconsumed_tail
            if allowed < 0:
                raise InputError(
                    f"{path}: must have at most {most} cells, or --max-cells must be "
                    "raised (it unpacks to more)"
                )
