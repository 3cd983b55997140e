"""``ecg-gnn data``: list, info, check, get, import."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.data import list_datasets, load_dataset, resolve_data_root
from ecg_gnn.reading import MAX_CELLS, check_file
from ecg_gnn.system.cells import value_text
from ecg_gnn.system.checks import InputError, check_choice, printable
from ecg_gnn.system.files import check_free
from ecg_gnn.tabular.column_kinds import KINDS
from ecg_gnn.tabular.feature_blocks import ENCODINGS, MAX_CATEGORIES
from ecg_gnn.tabular.table_files import TABLE_SUFFIXES
from ecg_gnn.tabular.token_blocks import MAX_WORDS

if TYPE_CHECKING:
    from ecg_gnn.data import GraphDataset

_MAX_NAMES = 200  # of columns in one group
_AS_TYPED = {"source", "target", "directed", "scale", "encoding", "task", "seed"}
_AS_TYPED |= {"max_categories", "max_words", "max_cells"}
app = typer.Typer(
    no_args_is_help=True, help="Find, inspect, check, fetch and import graphs."
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="Catalogue name, generator with parameters, or .npz file."
    ),
]


@app.command("list")
@opt.verb()
def list_(data_root: Path | None = None, json_: bool = False) -> None:
    """List the datasets of the catalogue, and whether their files are here."""
    rows = list_datasets(data_root)
    if json_:
        terminal.print_json(rows)
        return
    columns = ["name", "kind", "nodes", "edges", "features", "classes", "metric"]
    table = [
        ["" if row[one] is None else value_text(row[one]) for one in columns]
        + ["yes" if row["present"] else ""]
        for row in rows
    ]
    terminal.print_table(([*columns, "here"], table))
    print(f"Data root: {resolve_data_root(data_root)}")


@app.command()
@opt.verb()
def info(name: Name, data_root: Path | None = None, json_: bool = False) -> None:
    """Show sizes, classes, splits, degrees, components and checksum of one graph."""
    _show(load_dataset(name, data_root=data_root), json_)


@app.command()
@opt.verb()
def check(name: Name, data_root: Path | None = None, json_: bool = False) -> None:
    """Check that a graph can be trained on, or name its first fault (status 2)."""
    dataset = load_dataset(name, data_root=data_root, download=False)
    if not json_:
        print(f"{dataset.name}: ok")
    _show(dataset, json_, ok=True)


@app.command()
@opt.verb()
def get(name: Name, data_root: Path | None = None, out: Path | None = None) -> None:
    """Download a dataset into the data root, or generate one into a file.

    Options:
        out: Also write the graph to this .npz file.
    """
    if out is not None:
        opt.check_apart(out, name)
    dataset = load_dataset(name, data_root=data_root)
    if out is not None:
        from ecg_gnn.data import write_npz

        write_npz(dataset, out)
        print(f"{dataset.name}: written to {out}")
    else:
        print(f"{dataset.name}: ready ({dataset.num_nodes:,} nodes)")


def _show(dataset: "GraphDataset", json_: bool, **more: bool) -> None:
    from ecg_gnn.data import describe  # with torch, which a wrong name does not need

    description: dict[str, Any] = describe(dataset)
    if json_:
        terminal.print_json(more | description)
        return
    splits = description["splits"]
    first = f"{len(splits)}, the first: {value_text(splits[0])}"
    terminal.print_facts(description | {"splits": first})


@app.command("import")
@opt.verb()
def import_(
    out: Path,
    nodes: Path | None = None,
    edges: Path | None = None,
    graph: Path | None = None,
    label: str | None = None,
    id_: str | None = None,
    source: str | None = None,
    target: str | None = None,
    features: str | None = None,
    drop: str | None = None,
    numeric: str | None = None,
    categorical: str | None = None,
    ordinal: str | None = None,
    set_: str | None = None,
    date: str | None = None,
    text: str | None = None,
    missing: str | None = None,
    task: str = "auto",
    splits: str | None = None,
    directed: Annotated[bool, typer.Option("--directed/--undirected")] = False,
    words: str = "tfidf",
    encoding: str = "quantile",
    scale: bool = True,
    max_categories: int = MAX_CATEGORIES,
    max_words: int = MAX_WORDS,
    delimiter: str | None = None,
    max_cells: Annotated[int, typer.Option(envvar="ECG_MAX_CELLS")] = MAX_CELLS,
    seed: int = 0,
    json_: bool = False,
) -> None:
    """Turn tables of nodes and edges into a graph folder, and report on them.

    The folder is a dataset like any other: `ecg-gnn fit --dataset FOLDER`. Columns are
    recognised as numbers, categories (also integer codes), lists, dates or text, and
    the report says which; missing values are filled in and marked.

    Options:
        out: The graph folder to write.
        nodes: Table of nodes: .csv, .tsv, .txt or .parquet.
        edges: Table of edges, of the same types; or an .npz file that
            scipy.sparse.save_npz wrote, with rows in the order of the nodes.
        graph: Instead of tables, a whole graph: an .npz file of arrays, or a .mat
            file of facebook100.
        directed: Whether edges have a direction.
        seed: Random seed of the drawn splits.

    Columns:
        label: Column to predict; nodes whose cell is empty are predicted later.
        id_: Column of node names (id, or the first).
        source: Column of edges' first nodes (source, or the first).
        target: Column of edges' second nodes (target, or the second).
        features: Columns to learn from, such as age,city (all others).
        drop: Columns not to learn from, such as name,note.
        numeric: Columns that are numbers.
        categorical: Columns that are categories.
        ordinal: Columns to read as numbers and as categories.
        set_: Columns of lists.
        date: Columns that are dates.
        text: Columns that are text.
        missing: Values that mean missing, such as unknown,-1; in the label column
            only words count.
        task: What the label is: classification, regression, or auto (a label of many
            different numbers is a regression).
        splits: Columns of splits, each with train, val or test in its cells (by
            default, ten stratified splits are drawn).

    Reading:
        words: How text is read: tfidf, or hashed (no vocabulary is kept).
        encoding: How numbers are read: quantile (to a normal distribution), standard
            (mean 0, deviation 1) or raw; columns of 0 and 1 stay as they are.
        scale: --no-scale is the same as --encoding raw.
        max_categories: Most features from one column of categories or lists (0: all).
        max_words: Most words from one column of text (0: all).
    """
    given = dict[str, Any](locals())
    check_choice("words", words, ["tfidf", "hashed"])
    check_choice("encoding", encoding, ENCODINGS)
    check_free(out)
    for path in filter(None, (nodes, edges)):
        if path.suffix.lower() in TABLE_SUFFIXES:
            check_file(path)  # before anything slow is imported
    from ecg_gnn.tabular import ImportOptions, import_files, import_graph

    named = (numeric, categorical, ordinal, set_, date, text)
    by_kind = zip(KINDS, map(_names, named), strict=True)
    options = ImportOptions(
        label=label or "label",
        id=id_,
        features=_names(features) or None,
        drop=_names(drop),
        kinds={name: kind for kind, names in by_kind for name in names},
        splits=_names(splits),
        hashed=words == "hashed",
        missing=_names(missing),
        **{name: given[name] for name in _AS_TYPED},
    )
    if graph is not None:
        if nodes is not None or edges is not None:
            raise InputError("'graph' cannot be combined with 'nodes' or 'edges'")
        imported = import_graph(graph, options)
    elif nodes is None or edges is None or label is None:
        needed = ("nodes", "edges", "label")
        absent = " and ".join(f"--{name}" for name in needed if given[name] is None)
        raise InputError(
            f"'nodes', 'edges' and 'label' must be given, or 'graph' (without {absent})"
        )
    else:
        imported = import_files(nodes, edges, options, delimiter=delimiter)
    imported.save(out)
    for note in imported.report.get("notes", ()):
        terminal.warn(note)
    if json_:
        terminal.print_json({"out": str(out), **imported.report})
    else:
        _print_report(imported.report)
        print(f"Written to {out}: try `ecg-gnn fit --dataset {out} --out MODEL`")


def _print_report(report: Mapping[str, Any]) -> None:
    homophily = {
        name.removesuffix("_homophily").replace("_", " "): value
        for name, value in report["homophily"].items()
    }
    for key, fact in {**report, "homophily": homophily}.items():
        if key in ("columns", "columns_left_out"):
            groups: dict[str, list[str]] = {}
            for name, said in fact.items():
                groups.setdefault(said, []).append(name)
            for said, names in groups.items():
                more = len(names) - _MAX_NAMES
                rest = [f"and {more:,} more (--json names all)"] if more > 0 else []
                text = ", ".join([*names[:_MAX_NAMES], *rest])
                terminal.print_facts({key: f"{said}: {text}"})
        elif key not in ("decisions", "notes"):
            terminal.print_facts({key: fact})
    for name, decision in report["decisions"].items():
        print(printable(f"{name}: {decision}"))


def _names(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise InputError(f"columns must be like A,B,C, each once (got {text!r})")
    return names
