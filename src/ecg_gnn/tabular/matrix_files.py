"""Graphs as sparse matrices: scipy's .npz files, and MATLAB's of facebook100."""

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, issparse

from ecg_gnn.data.graph_checks import check_edges
from ecg_gnn.reading import (
    BYTES_PER_CELL,
    check_cells,
    check_file,
    read_archive,
    refusing,
)
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Column, Pairs

_COMPRESSED = {"csr": csr_array, "csc": csc_array}
_MATRIX = "a sparse matrix as scipy.sparse.save_npz writes it (csr, csc or coo)"
_NETWORK = "a network of facebook100: a sparse matrix 'A' and 'local_info', version 5"
# What the columns of facebook100 mean; 0 is no value.
_LOCAL_INFO = ["status", "gender", "major", "second_major"]
_LOCAL_INFO += ["dorm", "year", "high_school"]

# MATLAB's format, version 5. SciPy's reader ends the process on some damaged files.
_HEADER_BYTES, _VERSION_AND_ORDER = 128, {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}
_MATRIX_KIND, _COMPRESSED_KIND, _SPARSE_CLASS = 14, 15, 5
_DTYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8"}
_DTYPES |= {12: "i8", 13: "u8"}


def read_adjacency(path: Path, num_nodes: int, most: int) -> Pairs:
    """The edges of a matrix whose rows are the nodes in their order, ``[E, 2]``."""
    keys = ["format", "shape", "data", "indices", "indptr", "row", "col"]
    arrays = read_archive(path, keys, most=most)
    with refusing(str(path), _MATRIX):
        layout = arrays["format"].item().decode()
        places = ("row", "col") if layout == "coo" else ("indices", "indptr")
        parts = [arrays[name] for name in ("data", *places)]
        matrix = _sparse(layout, parts, arrays["shape"].tolist())
        return _pairs_of(str(path), matrix, num_nodes)


def read_facebook(path: Path, most: int) -> tuple[dict[str, Column], Pairs]:
    """Columns and edges of one network of facebook100 (Traud et al., 2012).

    The column ``id`` numbers nodes in the order of the file.
    """
    check_file(path)
    with refusing(str(path), _NETWORK):
        arrays = _read_mat(path, most)
        adjacency, info = arrays["A"], arrays["local_info"]
        if issparse(info) or info.shape[1:] != (len(_LOCAL_INFO),):
            raise ValueError(f"local_info of shape {list(info.shape)}")
        values = np.where(info == 0, np.nan, info.astype(np.float64))
        pairs = _pairs_of(f"{path}: 'A'", adjacency, len(info))
    ids: dict[str, Column] = {"id": np.arange(len(info), dtype=np.float64)}
    return ids | dict(zip(_LOCAL_INFO, values.T.copy(), strict=True)), pairs


def _sparse(layout: str, parts: Sequence[Any], shape: Sequence[int]) -> Any:
    """The matrix of a file's entries and their places, which are checked."""
    data, *places = parts
    if data.dtype.kind not in "biuf" or any(p.dtype.kind not in "iu" for p in places):
        raise ValueError(f"arrays of {', '.join(str(each.dtype) for each in parts)}")
    if layout == "coo":
        return coo_array((data, tuple(places)), tuple(shape))
    # SciPy's own check passes some such starts, and it then writes past its arrays.
    starts = places[1].astype(np.int64)
    if (starts[1:] < starts[:-1]).any():
        raise ValueError("rows or columns that do not follow each other")
    matrix = _COMPRESSED[layout]((data, *places), tuple(shape))
    matrix.check_format(full_check=True)
    return matrix


def _pairs_of(source: str, matrix: Any, num_nodes: int) -> Pairs:
    """Places of the entries that are not 0, in a matrix of nodes times nodes."""
    is_sparse: bool = issparse(matrix)
    if not is_sparse or matrix.shape != (num_nodes, num_nodes):
        raise InputError(
            f"{source} must be a sparse matrix, {num_nodes} × {num_nodes} as there are "
            f"nodes (got {'' if is_sparse else 'a dense one, '}{list(matrix.shape)})"
        )
    entries = matrix.tocoo()
    ends = np.stack([entries.row, entries.col], axis=1)
    return check_edges(source, ends[entries.data != 0], num_nodes)


# --- MATLAB's files -------------------------------------------------------------------


def _read_mat(path: Path, most: int) -> dict[str, Any]:
    """The matrices ``A`` and ``local_info``; anything else is left out."""
    check_cells(str(path), [path.stat().st_size // BYTES_PER_CELL], most)
    content = path.read_bytes()
    order = _VERSION_AND_ORDER[content[_HEADER_BYTES - 4 : _HEADER_BYTES]]
    matrices = {}
    for kind, part in _elements(content[_HEADER_BYTES:], order):
        inner = [(kind, part)]
        if kind == _COMPRESSED_KIND:
            stream = zlib.decompressobj()
            unpacked = stream.decompress(part, most * BYTES_PER_CELL + 1)
            check_cells(str(path), [-(-len(unpacked) // BYTES_PER_CELL)], most)
            if not stream.eof:
                raise ValueError("compressed data that was cut short")
            inner = list(_elements(unpacked, order))
        for each, matrix in inner:
            if each != _MATRIX_KIND:
                continue
            (_, flags), (_, shape), (_, name), *parts = _elements(matrix, order)
            if name in (b"A", b"local_info"):
                matrices[name.decode()] = _matrix(flags, shape, parts, order)
    return matrices


def _elements(content: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Kind and bytes of each element; up to four bytes may stand in the tag."""
    place = 0
    while place < len(content):
        kind, length = struct.unpack_from(f"{order}II", content, place)
        start = place + 8
        if kind >> 16:
            kind, length, start = kind & 0xFFFF, kind >> 16, place + 4
        if (end := start + length) > len(content):
            raise ValueError("an element that was cut short")
        yield kind, content[start:end]
        place = end if kind == _COMPRESSED_KIND else end + -end % 8


def _matrix(
    flags: bytes, shape_bytes: bytes, parts: list[tuple[int, bytes]], order: str
) -> Any:
    """A dense or sparse matrix; one of complex numbers has more parts."""
    shape = tuple(np.frombuffer(shape_bytes, f"{order}i4").tolist())
    arrays = [
        np.frombuffer(part, order + _DTYPES[kind]).astype(_DTYPES[kind])
        for kind, part in parts
    ]
    if struct.unpack(f"{order}II", flags)[0] & 0xFF != _SPARSE_CLASS:
        (values,) = arrays
        return values.reshape(shape, order="F")
    minor, starts, data = arrays
    used = starts[-1]  # a file may have room for more entries than it has
    return _sparse("csc", (data[:used], minor[:used], starts), shape)
