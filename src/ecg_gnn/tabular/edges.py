"""Pairs of names to pairs of node numbers, with a word on repeats and self-loops."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.tables import Table

Pairs = NDArray[np.int64]

_SOURCES = ("source", "src", "from", "u")
_TARGETS = ("target", "dst", "to", "v")
_IDS = ("id", "node_id", "node")


def number_nodes(table: Table, column: str) -> dict[str, int]:
    """The number of every node by its name; a name that comes twice is refused."""
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
    """Both ends of every edge as node numbers, ``[E, 2]``; unknown nodes are named."""
    columns = {source: "sources", target: "targets"}
    names = {each: table.names(each, f"edges' {columns[each]}") for each in columns}
    ends = {each: [numbers.get(n, -1) for n in names[each]] for each in columns}
    for column, found in ends.items():
        if -1 in found:
            row = found.index(-1)
            raise InputError(
                f"{table.source}: {column!r} must name nodes of the node table (got "
                f"{names[column][row]!r} in row {row + 1}; unknown in all: "
                f"{' and '.join(f'{e.count(-1)} in {c!r}' for c, e in ends.items())})"
            )
    return np.array([ends[source], ends[target]], dtype=np.int64).T.copy()


def count_repeats(pairs: Pairs, num_nodes: int, directed: bool) -> dict[str, int]:
    """Self-loops, and edges that an earlier row already has."""
    loops = pairs[:, 0] == pairs[:, 1]
    rest = pairs[~loops]
    if not directed:
        rest = np.sort(rest, axis=1)
    distinct = len(np.unique(rest[:, 0] * num_nodes + rest[:, 1]))
    return {
        "self_loops_dropped": int(loops.sum()),
        "duplicate_edges_dropped": len(rest) - distinct,
    }


def id_column(table: Table, given: str | None) -> str:
    """The column that names nodes: the one given, a usual name, or the first."""
    return given or _usual(table, _IDS) or next(iter(table.columns))


def end_columns(
    table: Table, source: str | None, target: str | None
) -> tuple[str, str]:
    """The columns of an edge's two ends: given, of usual names, or the first two."""
    names = list(table.columns)
    source = source or _usual(table, _SOURCES) or names[0]
    rest = [name for name in names if name != source] or names
    target = target or _usual(table, _TARGETS) or rest[0]
    if source == target:
        raise InputError(
            f"{table.source}: 'source' and 'target' must be two columns (got "
            f"{source!r} for both; the file has {names[:20]})"
        )
    return source, target


def _usual(table: Table, names: Sequence[str]) -> str | None:
    lower = {name.lower(): name for name in reversed(list(table.columns))}
    return next((lower[name] for name in names if name in lower), None)
