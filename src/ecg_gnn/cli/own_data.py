"""``ecg-gnn data import``: one's own tables to a graph folder, with a report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import print_json
from ecg_gnn.reading import MAX_CELLS
from ecg_gnn.system.checks import InputError, check_choice, printable
from ecg_gnn.tabular.graph import OwnGraph, check_free
from ecg_gnn.tabular.importing import ImportOptions, import_files
from ecg_gnn.tabular.sources import LABEL, import_graph

COLUMNS, READING = "Columns", "Reading"
# Homophily is not counted over all edges.
_MEASURED = {"num_edges": "of edges between nodes with a class:"}

Delimiter = Annotated[
    str | None,
    typer.Option(help="Of CSV files; a comma unless given.", rich_help_panel=READING),
]
MaxCells = Annotated[
    int,
    typer.Option(
        help="Refuse tables, arrays and features with more rows times columns.",
        envvar="ECG_MAX_CELLS",
        rich_help_panel=READING,
    ),
]


def import_(
    out: Annotated[Path, typer.Option(help="The graph folder to write.")],
    nodes: Annotated[
        Path | None, typer.Option(help="Table of nodes: .csv, .tsv or .parquet.")
    ] = None,
    edges: Annotated[
        Path | None, typer.Option(help="Table of edges: .csv, .tsv or .parquet.")
    ] = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Instead of tables a whole graph: .npz, a PyG Data saved as .pt or "
            ".safetensors, or .graphml."
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of classes; nodes without a value are those to predict.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column that names nodes (id, or the first).",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            help="Column where edges start (source, or the first).",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Column where edges end (target, or the second).",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help="Columns to learn from, such as age,city (all others).",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    numeric: Annotated[
        str | None,
        typer.Option(help="Columns that are numbers.", rich_help_panel=COLUMNS),
    ] = None,
    categorical: Annotated[
        str | None,
        typer.Option(help="Columns that are categories.", rich_help_panel=COLUMNS),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="Columns that are text.", rich_help_panel=COLUMNS),
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(
            help="Columns that say train, val or test, one split each; else ten "
            "stratified splits are drawn.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    directed: Annotated[
        bool,
        typer.Option("--directed/--undirected", help="Does (u, v) differ from (v, u)?"),
    ] = False,
    words: Annotated[
        str,
        typer.Option(
            help="How text is read: tfidf, or hashed (no vocabulary is kept).",
            rich_help_panel=READING,
        ),
    ] = "tfidf",
    scale: Annotated[
        bool,
        typer.Option(
            "--scale/--no-scale",
            help="Standardise numbers.",
            rich_help_panel=READING,
        ),
    ] = True,
    delimiter: Delimiter = None,
    max_cells: MaxCells = MAX_CELLS,
    seed: Annotated[int, typer.Option(help="Of the splits that are drawn.")] = 0,
    as_json: opt.AsJson = False,
) -> None:
    """Turn tables of nodes and edges into a graph folder, and say what was found.

    The folder is a dataset like any other: `ecg-gnn run --dataset FOLDER`. Columns are
    recognised as numbers, categories or text; missing values are filled in and marked.
    """
    check_choice("words", words, ["tfidf", "hashed"])
    kinds = {
        name: kind
        for kind, names in (
            ("numeric", numeric),
            ("categorical", categorical),
            ("text", text),
        )
        for name in _names(names) or ()
    }
    options = ImportOptions(
        label=label or LABEL,
        id=id_,
        source=source,
        target=target,
        features=_names(features),
        kinds=kinds,
        splits=_names(splits) or (),
        directed=directed,
        scale=scale,
        hashed=words == "hashed",
        seed=seed,
        max_cells=max_cells,
    )
    check_free(out)
    found = _read(nodes, edges, graph, label, options, delimiter)
    found.save(out)
    for note in found.report.get("notes", ()):
        opt.warn(note)
    if as_json:
        print_json({"out": str(out), **found.report})
    else:
        print_report(found)
        print(f"Written to {out}: try `ecg-gnn fit --dataset {out} --out MODEL`")


def _read(
    nodes: Path | None,
    edges: Path | None,
    graph: Path | None,
    label: str | None,
    options: ImportOptions,
    delimiter: str | None,
) -> OwnGraph:
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


def print_report(found: OwnGraph) -> None:
    """What was found, a line each."""
    for key, value in found.report.items():
        if key == "homophily":
            value = {_MEASURED.get(name, name): each for name, each in value.items()}
        if key != "notes" and (shown := _shown(value)):
            print(f"{key.replace('_', ' '):>24}  {printable(shown)}")


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    found = tuple(name.strip() for name in text.split(",") if name.strip())
    if not found or len(set(found)) != len(found):
        raise InputError(f"columns must be like A,B,C, each once (got {text!r})")
    return found


def _shown(value: Any, most: int = 12) -> str:
    if isinstance(value, dict):
        parts = [f"{key} {_shown(part)}" for key, part in value.items()]
        rest = f", and {len(parts) - most} more" if len(parts) > most else ""
        return ", ".join(parts[:most]) + rest
    if value is None:
        return "undefined"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else _number(value)


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
