"""From tables of nodes and edges to a checked graph with features and a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import make_dataset
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.reading import max_cells
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.tabular.column_kinds import KINDS, NO_VALUES
from ecg_gnn.tabular.columns import (
    UNNAMED,
    Pairs,
    Table,
    and_more,
    are_row_numbers,
    mark_missing,
    parse_numbers,
)
from ecg_gnn.tabular.feature_blocks import ENCODINGS, MAX_CATEGORIES
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline, fit_features
from ecg_gnn.tabular.import_report import describe_import, import_warnings
from ecg_gnn.tabular.labels import TASKS, read_labels, read_masks
from ecg_gnn.tabular.matrix_files import read_adjacency
from ecg_gnn.tabular.named_graph import NamedGraph, number_nodes, pair_nodes
from ecg_gnn.tabular.structure_features import structure_features
from ecg_gnn.tabular.table_files import read_table
from ecg_gnn.tabular.token_blocks import MAX_WORDS

# Usual names of columns, looked for where the user names none.
_SOURCES = ("source", "src", "from", "u")
_TARGETS = ("target", "dst", "to", "v")
_IDS = ("id", "node_id", "node")


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Which columns are what, and how they are read.

    Attributes:
        label: The column to predict; nodes without a value are unlabelled.
        id: The column that names nodes; by default ``id`` or the first.
        source: Where edges start; by default ``source`` or the first column.
        target: Where edges end; by default ``target`` or the second column.
        features: Columns to learn from; by default all others.
        drop: Columns not to learn from.
        kinds: One of ``KINDS``, for columns not to be guessed.
        splits: Columns that say train, val or test, one split each.
        directed: Whether (u, v) differs from (v, u).
        scale: Whether numbers are encoded; if not, as if ``encoding`` were raw.
        encoding: How: quantile (to a normal distribution), standard, or raw.
        hashed: Whether words are hashed instead of weighted by TF-IDF.
        missing: Texts that mean missing, besides the usual; in labels no numbers.
        max_categories: Most features from a column of categories or lists; 0: no limit.
        max_words: Most words from a column of text; 0: no limit.
        task: classification, regression (the label is a number), or auto.
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
    drop: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    splits: tuple[str, ...] = ()
    directed: bool = False
    scale: bool = True
    encoding: str = "quantile"
    hashed: bool = False
    missing: tuple[str, ...] = ()
    max_categories: int = MAX_CATEGORIES
    max_words: int = MAX_WORDS
    task: str = "auto"
    seed: int = 0
    max_cells: int = field(default_factory=max_cells)

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            check_choice(f"kind of {name}", kind, KINDS)
        check_choice("encoding", self.encoding, ENCODINGS)
        check_choice("task", self.task, TASKS)
        check_in_range("max_categories", self.max_categories, 0, None)
        check_in_range("max_words", self.max_words, 0, None)


def import_files(
    nodes: str | Path,
    edges: str | Path,
    options: ImportOptions,
    *,
    delimiter: str | None = None,
) -> NamedGraph:
    r"""Import a table of nodes and its edges, see :func:`read_table`.

    Args:
        nodes: A row per node.
        edges: A row per edge; or an ``.npz`` file of a scipy sparse matrix, whose rows
            are the nodes in the order of their table.
        options: Which columns are what.
        delimiter: Of text files; unless given, found in their headers.

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
    if Path(edges).suffix.lower() != ".npz":
        return import_tables(read(nodes), read(edges), options)
    table = read(nodes)
    id_name, numbers = _number_nodes(table, options)
    pairs = read_adjacency(Path(edges), len(numbers), options.max_cells)
    return assemble(table, tuple(numbers), pairs, options, {"id": id_name})


def import_tables(nodes: Table, edges: Table, options: ImportOptions) -> NamedGraph:
    """Make a graph of a table of nodes and a table of edges."""
    id_name, numbers = _number_nodes(nodes, options)
    names = list(edges.columns)
    has_index = names[0] == UNNAMED and len(names) > 2
    if has_index and are_row_numbers(edges.columns[UNNAMED]):
        del names[0]
    source = options.source or _usual_column(names, _SOURCES, 0)
    after = 1 if source == names[0] else 0
    target = options.target or _usual_column(names, _TARGETS, after)
    if source == target:
        raise InputError(
            f"{edges.source}: 'source' and 'target' must be two columns (got "
            f"{source!r} for both; the file has {names[:20]})"
        )
    pairs = pair_nodes(edges, source, target, numbers, nodes)
    columns = {"id": id_name, "source": source, "target": target}
    graph = assemble(nodes, tuple(numbers), pairs, options, columns)
    if unread := [name for name in names if name not in (source, target)]:
        said = f"{', '.join(map(repr, unread[:3]))}{and_more(unread, 3)}"
        note = f"{edges.source}: edges have no weights or features, {said} is not read"
        graph.report["notes"].append(note)
    return graph


def assemble(
    nodes: Table,
    ids: tuple[str, ...],
    pairs: Pairs,
    options: ImportOptions,
    columns: Mapping[str, str] | None = None,
    masks: Sequence[NDArray[np.bool_]] | None = None,
) -> NamedGraph:
    """Features, classes and splits of nodes whose edges are numbered already.

    ``columns`` are the id, source and target where they have other names.
    """
    nodes.column(options.label, "label")  # the likeliest mistake is reported first
    columns = {"id": "id", "source": "source", "target": "target"} | {**(columns or {})}
    names = _feature_columns(nodes, options, columns["id"])
    nodes = mark_missing(nodes, names, options.missing)
    words = [text for text in options.missing if parse_numbers([text]) is None]
    nodes = mark_missing(nodes, [options.label], words)  # zero may be a class
    labels = read_labels(nodes, options.label, options.task)
    if options.splits:
        masks = read_masks(nodes, options.splits, labels.y)
    elif masks is not None:
        masks = [mask & (labels.y != UNLABELLED) for mask in masks]
    pipeline = fit_features(nodes, names, options)
    dataset = make_dataset(
        name=Path(nodes.source).stem,
        x=_features(nodes, pairs, pipeline, options),
        y=labels.y,
        edges=pairs,
        masks=masks,
        seed=options.seed,
        directed=options.directed,
        unlabelled=True,
        source=nodes.source,
    )
    report = describe_import(dataset, labels, pipeline, nodes, pairs)
    undirected = pairs[:0] if options.directed else pairs
    understood = {*options.kinds, *pipeline.decimal_marks}
    guessed = [name for name in names if name not in understood]
    classes = report["classes"] if labels.targets is None else {}
    notes = import_warnings(nodes, guessed, classes, options.label, undirected)
    return NamedGraph(
        dataset=dataset,
        ids=ids,
        classes=labels.classes,
        columns={**columns, "label": options.label},
        features=pipeline if pipeline.blocks else None,
        report={**report, "notes": notes},
        targets=labels.targets,
    )


def _number_nodes(nodes: Table, options: ImportOptions) -> tuple[str, dict[str, int]]:
    """The column of nodes' names, and the number of every node by its name."""
    nodes.column(options.label, "label")  # the likeliest mistake is reported first
    id_name = options.id or _usual_column(list(nodes.columns), _IDS, 0)
    return id_name, number_nodes(nodes, id_name)


def _features(
    nodes: Table, pairs: Pairs, pipeline: FeaturePipeline, options: ImportOptions
) -> NDArray[np.float32]:
    """Features of columns, or of the graph if there is nothing in the columns."""
    if pipeline.blocks:
        return pipeline.transform(nodes, most=options.max_cells)
    if not (pairs[:, 0] != pairs[:, 1]).any():
        raise InputError(
            f"{nodes.source}: must have a column to make features of, or edges (got "
            f"{dict(pipeline.dropped)} and no edge)"
        )
    if pipeline.dropped and set(pipeline.dropped.values()) == {NO_VALUES}:
        raise InputError(
            f"{nodes.source}: must have a column with values to make features of, or "
            f"no column at all for those of the graph (got {dict(pipeline.dropped)})"
        )
    return structure_features(pairs, nodes.num_rows)


def _feature_columns(nodes: Table, options: ImportOptions, id_name: str) -> list[str]:
    for name in options.drop:
        nodes.column(name, "columns to drop")
    others = {options.label, *options.splits, id_name, *options.drop}
    given = options.features or [name for name in nodes.columns if name not in others]
    names = [name for name in given if name not in options.drop]
    if options.label in names:
        raise InputError(f"'features' must not have the label {options.label!r}")
    for name, kind in options.kinds.items():
        if name not in names:
            got = f"{names[:20]} (got {name!r})"
            raise InputError(f"{kind!r} must name features, {got}")
    return names


def _usual_column(columns: Sequence[str], usual: Sequence[str], place: int) -> str:
    """The column that has a usual name, else the one at a place."""
    lower = {name.lower(): name for name in reversed(columns)}
    default = columns[min(place, len(columns) - 1)]
    return next((lower[name] for name in usual if name in lower), default)
