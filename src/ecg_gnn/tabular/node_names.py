"""Names of nodes in tables, and edges as pairs of node numbers."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data.graph_checks import check_edges
from ecg_gnn.reading import read_archive, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table, as_text

Pairs = NDArray[np.int64]
_MATRIX = "a sparse matrix as scipy.sparse.save_npz writes it (csr, csc or coo)"


def number_nodes(table: Table, column: str) -> dict[str, int]:
    """The number of every node by its name; refuses a name that occurs twice."""
    numbers: dict[str, int] = {}
    for row, name in enumerate(table.names(column, "nodes")):
        if name in numbers:
            raise InputError(
                f"{table.source}: {column!r} must name every node once (got {name!r} "
                f"in rows {numbers[name] + 1} and {row + 1})"
            )
        numbers[name] = row
    return numbers


def pair_nodes(
    table: Table,
    source: str,
    target: str,
    numbers: Mapping[str, int],
    nodes: Table | None = None,
) -> Pairs:
    """Both ends of every edge as node numbers, ``[E, 2]``; refuses unknown nodes.

    The refusal suggests a column of ``nodes`` that has all names, if there is one.
    """
    names = {
        source: table.names(source, "edges' sources"),
        target: table.names(target, "edges' targets"),
    }
    if source in numbers and target in numbers:
        raise InputError(
            f"{table.source}: must have a header (the first row has the names of two "
            f"nodes, {source!r} and {target!r}, which would not become an edge)"
        )
    ends = {each: [numbers.get(n, -1) for n in names[each]] for each in names}
    for column, end in ends.items():
        if -1 in end:
            row = end.index(-1)
            counts = {each: codes.count(-1) for each, codes in ends.items()}
            parts = " and ".join(f"{n} in {name!r}" for name, n in counts.items())
            used = {*names[source], *names[target]}
            raise InputError(
                f"{table.source}: {column!r} must name nodes of the node table (got "
                f"{names[column][row]!r} in row {row + 1}; {sum(counts.values())} "
                f"unknown in total: {parts}){_other_id(nodes, used)}"
            )
    return np.array([ends[source], ends[target]], dtype=np.int64).T.copy()


def _other_id(nodes: Table | None, used: set[str]) -> str:
    """A suggestion of the column that names every node, among them those used."""
    for name, column in nodes.columns.items() if nodes else ():
        texts = {as_text(value) for value in column}
        if used <= texts and len(texts) == len(column):
            return f"; the column {name!r} has all of them: --id {quote(name)}"
    return ""


def read_adjacency(path: Path, num_nodes: int, most: int) -> Pairs:
    """The edges of a matrix whose rows are the nodes in their order, ``[E, 2]``.

    SciPy is not asked: starts of rows that it does not check make it write past its
    arrays.
    """
    names = ["format", "shape", "data", "indices", "indptr", "row", "col"]
    arrays = read_archive(path, names, most=most)
    with refusing(str(path), _MATRIX):
        layout, data = arrays["format"].item().decode(), arrays["data"]
        if layout not in ("csr", "csc", "coo") or data.dtype.kind not in "biuf":
            raise ValueError(f"format {layout!r} with {data.dtype}")
        if (shape := arrays["shape"].tolist()) != [num_nodes, num_nodes]:
            raise InputError(
                f"{path} must be a sparse matrix, {num_nodes} × {num_nodes} as there "
                f"are nodes (got {shape})"
            )
        if layout == "coo":
            rows, columns = arrays["row"], arrays["col"]
        else:
            starts, columns = arrays["indptr"].astype(np.int64), arrays["indices"]
            if len(starts) != num_nodes + 1 or starts[-1] != len(columns):
                raise ValueError(f"{len(starts)} starts up to {starts[-1]}")
            rows = np.repeat(np.arange(num_nodes), np.diff(starts))
        if layout == "csc":
            rows, columns = columns, rows
        ends = np.stack([rows, columns], axis=1)[data != 0]
        return check_edges(str(path), ends, num_nodes)
