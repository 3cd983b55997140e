"""``ecg-gnn predict``: classes of nodes in the model's own graph, or of new ones."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.data import Delimiter, MaxCells
from ecg_gnn.cli.show import print_json
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.predict import ENDINGS, predict_nodes, predict_stored
from ecg_gnn.reading import MAX_CELLS
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.table_files import read_table


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder.")],
    out: Annotated[Path, typer.Option(help="File to write: .csv, .tsv or .parquet.")],
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="Table of nodes to predict; by default, the nodes of the model's own "
            "graph that have no class."
        ),
    ] = None,
    edges: Annotated[
        Path | None, typer.Option(help="Table of new nodes' edges.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every node of the model's own graph.")
    ] = False,
    delimiter: Delimiter = None,
    max_cells: MaxCells = MAX_CELLS,
    as_json: opt.AsJson = False,
) -> None:
    """Write class probabilities of nodes, known or new.

    New nodes join the model's graph through the given edges. Their neighbours in the
    evolved graph are the stored nodes with the most similar embeddings.
    """
    check_choice(f"ending of {out}", out.suffix.lower(), ENDINGS)
    opt.check_apart(out, nodes, edges)
    if every and nodes is not None:
        raise InputError("'all' must stand alone, without 'nodes'")
    if edges is not None and nodes is None:
        raise InputError("'edges' must come with 'nodes'")
    loaded = read_model(model)
    if nodes is None:
        predictions = predict_stored(loaded, every=every)
    else:
        read = partial(read_table, delimiter=delimiter, most=max_cells)
        tables = read(nodes), None if edges is None else read(edges)
        predictions = predict_nodes(loaded, *tables, most=max_cells)
    predictions.write(out)
    for note in predictions.notes:
        opt.warn(note)
    if as_json:
        print_json(
            {
                "out": str(out),
                "nodes": len(predictions.ids),
                "new": predictions.num_new,
                "classes": list(predictions.classes),
                "notes": list(predictions.notes),
            }
        )
    else:
        count, new = len(predictions.ids), predictions.num_new
        print(f"{out}: {count:,} nodes, {new:,} of them new")
