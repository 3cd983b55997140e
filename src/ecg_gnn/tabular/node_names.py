"""Names of nodes in tables, and edges as pairs of node numbers."""

from collections.abc import Mapping
from shlex import quote

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Table, as_text

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
