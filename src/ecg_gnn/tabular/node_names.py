"""Names of nodes in tables, and edges as pairs of node numbers."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table

Pairs = NDArray[np.int64]


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
    table: Table, source: str, target: str, numbers: Mapping[str, int]
) -> Pairs:
    """Both ends of every edge as node numbers, ``[E, 2]``; refuses unknown nodes."""
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
    unknown = sum(end.count(-1) for end in ends.values())
    for column, end in ends.items():
        if -1 in end:
            row = end.index(-1)
            raise InputError(
                f"{table.source}: {column!r} must name nodes of the node table (got "
                f"{names[column][row]!r} in row {row + 1}; {unknown} unknown in total)"
            )
    return np.array([ends[source], ends[target]], dtype=np.int64).T.copy()
