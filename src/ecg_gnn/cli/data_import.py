"""``ecg-gnn data import``: from people's tables to a graph folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import print_facts, print_json, warn
from ecg_gnn.reading import MAX_CELLS, check_file
from ecg_gnn.system.checks import InputError, check_choice, printable
from ecg_gnn.system.files import check_free
from ecg_gnn.tabular.column_kinds import KINDS
from ecg_gnn.tabular.feature_blocks import ENCODINGS, MAX_CATEGORIES
from ecg_gnn.tabular.table_files import TABLE_SUFFIXES
from ecg_gnn.tabular.token_blocks import MAX_WORDS

_MAX_NAMES = 200  # of columns in one group
_AS_TYPED = ("source", "target", "directed", "scale", "encoding", "task", "seed")
_AS_TYPED += ("max_categories", "max_words", "max_cells")


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
        missing: Values that mean missing, such as unknown,-1; in a label only words.
        task: What the label is: classification, regression, or auto (a label of many
            different numbers is a regression).
        splits: Columns of splits, each with train, val or test in its cells (by
            default, ten stratified splits are drawn).

    Reading:
        words: How text is read: tfidf, or hashed (no vocabulary is kept).
        encoding: How numbers are read: quantile (to a normal distribution), standard
            (mean 0, deviation 1) or raw; columns of 0 and 1 stay as they are.
        scale: --no-scale is the same as --encoding raw.
        max_categories: Features of one column of categories or sets (0: no limit).
        max_words: Features of one column of text (0: no limit).
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
            raise InputError("'graph' must stand alone, without 'nodes' and 'edges'")
        imported = import_graph(graph, options)
    elif nodes is None or edges is None or label is None:
        given = {"nodes": nodes, "edges": edges, "label": label}
        absent = " and ".join(f"--{name}" for name in given if given[name] is None)
        raise InputError(
            f"'nodes', 'edges' and 'label' must be given, or 'graph' (without {absent})"
        )
    else:
        imported = import_files(nodes, edges, options, delimiter=delimiter)
    imported.save(out)
    for note in imported.report.get("notes", ()):
        warn(note)
    if json_:
        print_json({"out": str(out), **imported.report})
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
                print_facts({key: f"{said}: {text}"})
        elif key not in ("decisions", "notes"):
            print_facts({key: fact})
    for name, decision in report["decisions"].items():
        print(printable(f"{name}: {decision}"))


def _names(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names or len(set(names)) != len(names):
        raise InputError(f"columns must be like A,B,C, each once (got {text!r})")
    return names
