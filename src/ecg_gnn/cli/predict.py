"""``ecg-gnn predict``: a model folder, on its own graph's nodes or on new ones."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.data_import import Delimiter, MaxCells
from ecg_gnn.cli.show import print_json
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.predicting import ENDINGS, predict_nodes, predict_stored
from ecg_gnn.reading import MAX_CELLS
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.file_types import read_table


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder.")],
    out: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .parquet.")],
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="Table of nodes to predict; by default those nodes of the model's own "
            "graph that have no class."
        ),
    ] = None,
    edges: Annotated[
        Path | None, typer.Option(help="Table of the edges of new nodes.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every node of the model's own graph.")
    ] = False,
    delimiter: Delimiter = None,
    max_cells: MaxCells = MAX_CELLS,
    as_json: opt.AsJson = False,
) -> None:
    """Write the class and the probabilities of nodes, known or new.

    New nodes join the model's graph by the edges given; their neighbours in the
    evolved graph are found by the stored embedder among the stored nodes.
    """
    check_choice(f"ending of {out}", out.suffix.lower(), ENDINGS)
    opt.check_apart(out, nodes, edges)
    if every and nodes is not None:
        raise InputError("'all' must stand alone, without 'nodes'")
    if edges is not None and nodes is None:
        raise InputError("'edges' must come with 'nodes'")
    loaded = read_model(model)
    if nodes is None:
        found = predict_stored(loaded, every=every)
    else:
        tables = [
            None
            if path is None
            else read_table(path, delimiter=delimiter, most=max_cells)
            for path in (nodes, edges)
        ]
        assert tables[0] is not None
        found = predict_nodes(loaded, tables[0], tables[1], most=max_cells)
    found.write(out)
    for note in found.notes:
        opt.warn(note)
    if as_json:
        print_json(
            {
                "out": str(out),
                "nodes": len(found.ids),
                "new": found.num_new,
                "classes": list(found.classes),
                "notes": list(found.notes),
            }
        )
    else:
        print(f"{out}: {len(found.ids):,} nodes, {found.num_new:,} of them new")
