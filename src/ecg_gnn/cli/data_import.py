"""``ecg-gnn data import``: from people's tables to a graph folder."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import terminal as opt
from ecg_gnn.cli.terminal import print_facts, print_json
from ecg_gnn.reading import MAX_CELLS, check_file
from ecg_gnn.system.checks import InputError, check_choice, printable
from ecg_gnn.system.files import check_free
from ecg_gnn.tabular.column_kinds import KINDS
from ecg_gnn.tabular.feature_blocks import ENCODINGS, MAX_CATEGORIES
from ecg_gnn.tabular.table_files import (
    GRAPH_LABEL,
    GRAPH_TYPES,
    TABLE_TYPES,
    list_suffixes,
)
from ecg_gnn.tabular.token_blocks import MAX_WORDS

if TYPE_CHECKING:
    from ecg_gnn.tabular import ImportOptions, NamedGraph

_TABLES = list_suffixes(TABLE_TYPES)
_GRAPHS = list_suffixes(GRAPH_TYPES, names=True)
_MAX_NAMES = 200  # of columns in one group
_WIDTH = 100
# Homophily is not counted over all edges.
_COUNTED = {"num_edges": "of edges between nodes with a class:"}


def _column(help_text: str, *names: str) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel="Columns")


def _reading(help_text: str, *names: str, **options: Any) -> Any:
    return typer.Option(*names, help=help_text, rich_help_panel="Reading", **options)


Delimiter = Annotated[
    str | None, _reading("Delimiter of CSV files (found in their headers).")
]
MaxCells = Annotated[
    int,
    _reading(
        "Refuse tables, arrays and features with more cells than this.",
        envvar="ECG_MAX_CELLS",
    ),
]


def import_(
    out: Annotated[Path, typer.Option(help="The graph folder to write.")],
    nodes: Annotated[
        Path | None, typer.Option(help=f"Table of nodes: {_TABLES}.")
    ] = None,
    edges: Annotated[
        Path | None,
        typer.Option(
            help=f"Table of edges: {_TABLES}. Or a matrix: .npz by "
            "scipy.sparse.save_npz, rows in the order of the nodes."
        ),
    ] = None,
    graph: Annotated[
        Path | None, typer.Option(help=f"Instead of tables, a whole graph: {_GRAPHS}.")
    ] = None,
    label: Annotated[
        str | None,
        _column("Column to predict; nodes whose cell is empty are predicted later."),
    ] = None,
    id_: Annotated[
        str | None, _column("Column of node names (id, or the first).", "--id")
    ] = None,
    source: Annotated[
        str | None, _column("Column of edges' first nodes (source, or the first).")
    ] = None,
    target: Annotated[
        str | None, _column("Column of edges' second nodes (target, or the second).")
    ] = None,
    features: Annotated[
        str | None, _column("Columns to learn from, such as age,city (all others).")
    ] = None,
    drop: Annotated[
        str | None, _column("Columns not to learn from, such as name,note.")
    ] = None,
    numeric: Annotated[str | None, _column("Columns that are numbers.")] = None,
    categorical: Annotated[str | None, _column("Columns that are categories.")] = None,
    ordinal: Annotated[
        str | None, _column("Columns to read as numbers and as categories.")
    ] = None,
    set_: Annotated[str | None, _column("Columns of lists.", "--set")] = None,
    date: Annotated[str | None, _column("Columns that are dates.")] = None,
    text: Annotated[str | None, _column("Columns that are text.")] = None,
    missing: Annotated[
        str | None,
        _column("Values that mean missing, such as unknown,-1; in a label only words."),
    ] = None,
    task: Annotated[
        str,
        _column(
            "What the label is: classification, regression, or auto (a label of many "
            "different numbers is a regression)."
        ),
    ] = "auto",
    splits: Annotated[
        str | None,
        _column(
            "Columns of splits, each with train, val or test in its cells (by default, "
            "ten stratified splits are drawn)."
        ),
    ] = None,
    directed: Annotated[
        bool,
        typer.Option("--directed/--undirected", help="Whether edges have a direction."),
    ] = False,
    words: Annotated[
        str, _reading("How text is read: tfidf, or hashed (no vocabulary is kept).")
    ] = "tfidf",
    encoding: Annotated[
        str,
        _reading(
            "How numbers are read: quantile (to a normal distribution), standard "
            "(mean 0, deviation 1) or raw; columns of 0 and 1 stay as they are."
        ),
    ] = "quantile",
    scale: Annotated[
        bool,
        _reading("--no-scale is the same as --encoding raw.", "--scale/--no-scale"),
    ] = True,
    max_categories: Annotated[
        int,
        _reading("Features of one column of categories or sets (0: no limit)."),
    ] = MAX_CATEGORIES,
    max_words: Annotated[
        int, _reading("Features of one column of text (0: no limit).")
    ] = MAX_WORDS,
    delimiter: Delimiter = None,
    max_cells: MaxCells = MAX_CELLS,
    seed: Annotated[int, typer.Option(help="Random seed of the drawn splits.")] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Turn tables of nodes and edges into a graph folder, and report on them.

    The folder is a dataset like any other: `ecg-gnn fit --dataset FOLDER`. Columns are
    recognised as numbers, categories (also integer codes), lists, dates or text, and
    the report says which; missing values are filled in and marked.
    """
    check_choice("words", words, ["tfidf", "hashed"])
    check_choice("encoding", encoding, ENCODINGS)
    check_free(out)
    for path in filter(None, (nodes, edges)):
        if path.suffix.lower() in {each.suffix for each in TABLE_TYPES}:
            check_file(path)  # before anything slow is imported
    from ecg_gnn.tabular import ImportOptions

    given = (numeric, categorical, ordinal, set_, date, text)
    by_kind = dict(zip(KINDS, given, strict=True))
    options = ImportOptions(
        label=label or GRAPH_LABEL,
        id=id_,
        source=source,
        target=target,
        features=_names(features),
        drop=_names(drop) or (),
        kinds={n: kind for kind, each in by_kind.items() for n in _names(each) or ()},
        splits=_names(splits) or (),
        directed=directed,
        scale=scale,
        encoding=encoding,
        hashed=words == "hashed",
        missing=_names(missing) or (),
        max_categories=max_categories,
        max_words=max_words,
        task=task,
        seed=seed,
        max_cells=max_cells,
    )
    imported = _import(nodes, edges, graph, label, options, delimiter)
    imported.save(out)
    for note in imported.report.get("notes", ()):
        opt.warn(note)
    if as_json:
        print_json({"out": str(out), **imported.report})
    else:
        counts = imported.report["homophily"].items()
        homophily = {_COUNTED.get(name, name): value for name, value in counts}
        decisions = imported.report["decisions"].items()
        apart = {"homophily": homophily, "decisions": "", "notes": ""}
        for key, fact in {**imported.report, **apart}.items():
            if key in ("columns", "columns_left_out"):
                _print_columns(key, fact)
            else:
                print_facts({key: fact})
        for name, decision in decisions:
            print(printable(f"{name}: {decision}"))
        print(f"Written to {out}: try `ecg-gnn fit --dataset {out} --out MODEL`")


def _print_columns(title: str, columns: Mapping[str, str]) -> None:
    """Print the names of columns, in lines by what is said of them."""
    groups: dict[str, list[str]] = {}
    for name, said in columns.items():
        groups.setdefault(said, []).append(printable(name))
    label = title.replace("_", " ")
    for said, names in groups.items():
        more = len(names) - _MAX_NAMES
        rest = [f"and {more:,} more (--json names all)"] if more > 0 else []
        # A name stays on one line.
        kept = [name.replace(" ", "\xa0") for name in names[:_MAX_NAMES]]
        lines = textwrap.fill(
            f"{said}: {', '.join([*kept, *rest])}",
            width=_WIDTH,
            initial_indent=f"{label:>24}  ",
            subsequent_indent=" " * 26,
            break_long_words=False,
            break_on_hyphens=False,
        )
        print(lines.replace("\xa0", " "))
        label = ""


def _import(
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    label: str | None,
    options: "ImportOptions",
    delimiter: str | None,
) -> "NamedGraph":
    from ecg_gnn.tabular import import_files, import_graph

    if graph is not None:
        if nodes is not None or edges is not None:
            raise InputError("'graph' must stand alone, without 'nodes' and 'edges'")
        return import_graph(graph, options)
    if nodes is None or edges is None or label is None:
        given = {"nodes": nodes, "edges": edges, "label": label}
        absent = " and ".join(f"--{name}" for name in given if given[name] is None)
        raise InputError(
            f"'nodes', 'edges' and 'label' must be given, or 'graph' (without {absent})"
        )
    return import_files(nodes, edges, options, delimiter=delimiter)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise InputError(f"columns must be like A,B,C, each once (got {text!r})")
    return names
