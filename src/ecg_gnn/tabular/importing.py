"""From tables of nodes and edges to a checked graph with features and a report."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import make_dataset
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.reading import max_cells
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.columns import KINDS, Table
from ecg_gnn.tabular.feature_pipeline import fit_features
from ecg_gnn.tabular.named_graph import NamedGraph, describe_import, import_warnings
from ecg_gnn.tabular.table_files import read_table

Pairs = NDArray[np.int64]
Masks = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]

# Usual names of columns, looked for where the user names none.
_SOURCES = ("source", "src", "from", "u")
_TARGETS = ("target", "dst", "to", "v")
_IDS = ("id", "node_id", "node")
# Longer numbers are names: Python refuses to read them, too.
_WHOLE = re.compile(r"-?\d{1,100}")
_PARTS = dict(train=0, training=0, val=1, valid=1, validation=1, test=2)


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Which columns are what, and how they are read.

    Attributes:
        label: The column of classes; nodes without a value are unlabelled.
        id: The column that names nodes; by default ``id`` or the first.
        source: Where edges start; by default ``source`` or the first column.
        target: Where edges end; by default ``target`` or the second column.
        features: Columns to learn from; by default all others.
        kinds: numeric, categorical or text, for columns not to be guessed.
        splits: Columns that say train, val or test, one split each.
        directed: Whether (u, v) differs from (v, u).
        scale: Whether numbers are standardised.
        hashed: Whether words are hashed instead of weighted by TF-IDF.
        seed: Random seed of the splits that are drawn where no column says.
        max_cells: The most rows times columns of a table or of the features.

    Examples:
        >>> ImportOptions(label="kind", kinds={"zip": "categorical"}).directed
        False
    """

    label: str
    id: str | None = None
    source: str | None = None
    target: str | None = None
    features: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    splits: tuple[str, ...] = ()
    directed: bool = False
    scale: bool = True
    hashed: bool = False
    seed: int = 0
    max_cells: int = field(default_factory=max_cells)

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            check_choice(f"kind of {name}", kind, KINDS)


def import_files(
    nodes: str | Path,
    edges: str | Path,
    options: ImportOptions,
    *,
    delimiter: str | None = None,
) -> NamedGraph:
    r"""Import a table of nodes and a table of edges, see :func:`read_table`.

    Args:
        nodes: A row per node.
        edges: A row per edge.
        options: Which columns are what.
        delimiter: Of CSV files; a comma unless given.

    Examples:
        >>> from ecg_gnn.tabular import ImportOptions
        >>> rows = [f"n{i},{i},{'ab'[i % 2]}" for i in range(12)]
        >>> _ = Path("nodes.csv").write_text("\n".join(["id,size,kind", *rows]))
        >>> _ = Path("edges.csv").write_text("source,target\nn0,n1\nn1,n2")
        >>> graph = import_files("nodes.csv", "edges.csv", ImportOptions(label="kind"))
        >>> graph.classes, graph.dataset.num_edges
        (('a', 'b'), 2)
    """
    read = partial(read_table, delimiter=delimiter, most=options.max_cells)
    return import_tables(read(nodes), read(edges), options)


def import_tables(nodes: Table, edges: Table, options: ImportOptions) -> NamedGraph:
    """Make a graph of a table of nodes and a table of edges."""
    nodes.column(options.label, "label")  # the likeliest mistake is reported first
    id_name = options.id or _usual_column(list(nodes.columns), _IDS, 0)
    numbers = number_nodes(nodes, id_name)
    names = list(edges.columns)
    source = options.source or _usual_column(names, _SOURCES, 0)
    after = 1 if source == names[0] else 0
    target = options.target or _usual_column(names, _TARGETS, after)
    if source == target:
        raise InputError(
            f"{edges.source}: 'source' and 'target' must be two columns (got "
            f"{source!r} for both; the file has {names[:20]})"
        )
    pairs = pair_nodes(edges, source, target, numbers)
    columns = {"id": id_name, "source": source, "target": target}
    return assemble(nodes, tuple(numbers), pairs, columns, options)


def assemble(
    nodes: Table,
    ids: tuple[str, ...],
    pairs: Pairs,
    columns: Mapping[str, str],
    options: ImportOptions,
    masks: Masks | None = None,
) -> NamedGraph:
    """Features, classes and splits of nodes whose edges are numbered already."""
    labels = nodes.texts(options.label, "label")
    classes = class_names(labels)
    if len(classes) < 2:
        got = f"only {classes[0]!r}" if classes else "no value at all"
        raise InputError(
            f"{nodes.source}: the label {options.label!r} must have at least 2 classes "
            f"(got {got})"
        )
    number = {name: place for place, name in enumerate(classes)}
    codes = [UNLABELLED if text is None else number[text] for text in labels]
    y = np.array(codes, dtype=np.int64)
    names = _feature_columns(nodes, options, columns["id"])
    pipeline = fit_features(
        nodes, names, kinds=options.kinds, scale=options.scale, hashed=options.hashed
    )
    dataset = make_dataset(
        name=Path(nodes.source).stem,
        x=pipeline.transform(nodes, most=options.max_cells),
        y=y,
        edges=pairs,
        masks=_read_masks(nodes, options.splits, y) if options.splits else masks,
        seed=options.seed,
        directed=options.directed,
        unlabelled=True,
        source=nodes.source,
    )
    report = describe_import(dataset, classes, pipeline, nodes, pairs)
    guessed = [name for name in names if name not in options.kinds]
    notes = import_warnings(nodes, guessed, report["classes"], options.label)
    return NamedGraph(
        dataset=dataset,
        ids=ids,
        classes=classes,
        columns={**columns, "label": options.label},
        features=pipeline,
        report={**report, "notes": notes},
    )


def class_names(labels: Sequence[str | None]) -> tuple[str, ...]:
    """The classes that occur, in the order of numbers if all are whole numbers."""
    names = {text for text in labels if text is not None}
    whole = all(_WHOLE.fullmatch(text) for text in names)
    return tuple(sorted(names, key=lambda text: (int(text) if whole else 0, text)))


def _feature_columns(nodes: Table, options: ImportOptions, id_name: str) -> list[str]:
    others = {options.label, *options.splits, id_name}
    names = options.features or [name for name in nodes.columns if name not in others]
    if options.label in names:
        raise InputError(f"'features' must not have the label {options.label!r}")
    if unused := [name for name in options.kinds if name not in names]:
        raise InputError(
            "'numeric', 'categorical' and 'text' must name features, "
            f"{list(names)[:20]} (got {unused})"
        )
    return list(names)


def _read_masks(nodes: Table, columns: Sequence[str], y: NDArray[np.int64]) -> Masks:
    """Train, validation and test masks [S, N] that columns spell out."""
    parts = np.full((len(columns), len(y)), -1)
    for split, column in enumerate(columns):
        for row, text in enumerate(nodes.texts(column, "splits")):
            if text is None:
                continue
            if text.lower() not in _PARTS:
                raise InputError(
                    f"{nodes.source}: {column!r} must be one of {sorted(_PARTS)} or "
                    f"nothing (got {text!r} in row {row + 1})"
                )
            parts[split, row] = _PARTS[text.lower()]
    parts[:, y == UNLABELLED] = -1
    return parts == 0, parts == 1, parts == 2


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
    ends = {each: [numbers.get(n, -1) for n in names[each]] for each in names}
    for column, end in ends.items():
        if -1 in end:
            row = end.index(-1)
            raise InputError(
                f"{table.source}: {column!r} must name nodes of the node table (got "
                f"{names[column][row]!r} in row {row + 1}; unknown in all: "
                f"{' and '.join(f'{e.count(-1)} in {c!r}' for c, e in ends.items())})"
            )
    return np.array([ends[source], ends[target]], dtype=np.int64).T.copy()


def _usual_column(columns: Sequence[str], usual: Sequence[str], place: int) -> str:
    """The column that has a usual name, else the one at a place."""
    lower = {name.lower(): name for name in reversed(columns)}
    default = columns[min(place, len(columns) - 1)]
    return next((lower[name] for name in usual if name in lower), default)
