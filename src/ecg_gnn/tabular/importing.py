"""From tables of nodes and edges to a checked graph with features and a report."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import make_dataset
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.reading import max_cells
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.edges import (
    Pairs,
    count_repeats,
    end_columns,
    id_column,
    number_nodes,
    pair_nodes,
)
from ecg_gnn.tabular.features import fit_features
from ecg_gnn.tabular.features.kinds import KINDS
from ecg_gnn.tabular.graph import OwnGraph
from ecg_gnn.tabular.noticing import notice_slips
from ecg_gnn.tabular.report import describe_import
from ecg_gnn.tabular.tables import Table, read_table

# Longer numbers are names: Python refuses to read them, too.
_WHOLE = re.compile(r"-?\d{1,100}")
_PARTS = {
    "train": 0,
    "training": 0,
    "val": 1,
    "valid": 1,
    "validation": 1,
    "test": 2,
}


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
        num_splits: How many stratified splits are drawn where no column says.
        seed: Of those splits.
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
    num_splits: int = 10
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
) -> OwnGraph:
    r"""Read two files (.csv, .tsv or .parquet) and make a graph of them.

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
    limit = options.max_cells
    return import_tables(
        read_table(nodes, delimiter=delimiter, most=limit),
        read_table(edges, delimiter=delimiter, most=limit),
        options,
    )


def import_tables(nodes: Table, edges: Table, options: ImportOptions) -> OwnGraph:
    """Make a graph of a table of nodes and a table of edges."""
    nodes.column(options.label, "label")  # the likeliest slip is named first
    id_name = id_column(nodes, options.id)
    numbers = number_nodes(nodes, id_name)
    source, target = end_columns(edges, options.source, options.target)
    pairs = pair_nodes(edges, source, target, numbers)
    columns = {"id": id_name, "source": source, "target": target}
    return assemble(nodes, tuple(numbers), pairs, columns, options)


def assemble(
    nodes: Table,
    ids: tuple[str, ...],
    pairs: Pairs,
    columns: Mapping[str, str],
    options: ImportOptions,
) -> OwnGraph:
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
    y = np.array(
        [UNLABELLED if text is None else number[text] for text in labels],
        dtype=np.int64,
    )
    not_features = {options.label, *options.splits, columns["id"]}
    names = options.features or [n for n in nodes.columns if n not in not_features]
    _check_features(options, names)
    pipeline = fit_features(
        nodes, names, kinds=options.kinds, scale=options.scale, hashed=options.hashed
    )
    dataset = make_dataset(
        name=Path(nodes.source).stem,
        x=pipeline.transform(nodes, most=options.max_cells),
        y=y,
        edges=pairs,
        masks=_masks(nodes, options.splits, y) if options.splits else None,
        num_splits=options.num_splits,
        seed=options.seed,
        directed=options.directed,
        unlabelled=True,
        source=nodes.source,
    )
    repeats = count_repeats(pairs, len(ids), options.directed)
    report = describe_import(dataset, classes, pipeline, nodes, repeats)
    guessed = [name for name in names if name not in options.kinds]
    slips = notice_slips(nodes, guessed, report["classes"], options.label)
    return OwnGraph(
        dataset=dataset,
        ids=ids,
        classes=classes,
        columns={**columns, "label": options.label},
        features=pipeline,
        report={**report, "notes": slips},
    )


def class_names(labels: Sequence[str | None]) -> tuple[str, ...]:
    """The classes that occur, in the order of numbers if all are whole numbers."""
    found = {text for text in labels if text is not None}
    whole = all(_WHOLE.fullmatch(text) for text in found)
    return tuple(sorted(found, key=lambda text: (int(text) if whole else 0, text)))


def _check_features(options: ImportOptions, names: Sequence[str]) -> None:
    if options.label in names:
        raise InputError(f"'features' must not have the label {options.label!r}")
    if unused := [name for name in options.kinds if name not in names]:
        raise InputError(
            "'numeric', 'categorical' and 'text' must name features, "
            f"{list(names)[:20]} (got {unused})"
        )


def _masks(
    nodes: Table, columns: Sequence[str], y: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
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
