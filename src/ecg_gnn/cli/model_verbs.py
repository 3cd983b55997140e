"""``ecg-gnn predict``, ``score`` and ``explain``: using a model folder."""

import math
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import (
    ProgressDisplay,
    print_facts,
    print_json,
    print_table,
    warn,
)
from ecg_gnn.config.classify_settings import MOST_EXPLAINED
from ecg_gnn.reading import MAX_CELLS
from ecg_gnn.system.canvas import check_format
from ecg_gnn.system.checks import InputError, check_choice, check_in_range, printable
from ecg_gnn.tabular.table_files import WRITABLE_SUFFIXES, read_table

# What does not exist is refused at once, before anything is imported.
ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", exists=True, help="The model folder.")
]


@opt.verb()
def predict(
    model: ModelFolder,
    out: Path,
    nodes: Path | None = None,
    edges: Path | None = None,
    all_: bool = False,
    coverage: float | None = None,
    safe_csv: bool = True,
    delimiter: str | None = None,
    max_cells: Annotated[int, typer.Option(envvar="ECG_MAX_CELLS")] = MAX_CELLS,
    json_: bool = False,
) -> None:
    """Predict nodes: classes with probabilities, or numbers.

    New nodes join the model's graph through the given edges; in the evolved graph their
    neighbours are the stored nodes with the most similar embeddings.

    Options:
        out: File to write: .csv, .tsv or .parquet.
        nodes: Table of nodes to predict; by default, the nodes of the model's own graph
            that have no class.
        edges: Table of their edges.
        all_: Predict every node of the model's own graph.
        coverage: Also write sets of classes (or intervals of numbers) that contain the
            truth with this probability, such as 0.9.
        safe_csv: In a text file, put ' before ids and classes that a spreadsheet would
            run as formulas, such as =1+1; `ecg-gnn score` takes it away again.
    """
    check_choice(f"ending of {out}", out.suffix.lower(), WRITABLE_SUFFIXES)
    opt.check_apart(out, nodes, edges)
    if all_ and nodes is not None:
        raise InputError("'all' cannot be combined with 'nodes'")
    if edges is not None and nodes is None:
        raise InputError("'edges' must come with 'nodes'")
    from ecg_gnn.inference import predict_nodes, predict_stored, read_model

    loaded = read_model(model)
    if nodes is None:
        predictions = predict_stored(loaded, every=all_)
    else:
        read = partial(read_table, delimiter=delimiter, most=max_cells)
        tables = read(nodes), None if edges is None else read(edges)
        predictions = predict_nodes(loaded, *tables, most=max_cells)
    predictions = predictions.with_coverage(loaded, coverage)
    predictions.write(out, safe_csv=safe_csv)
    for note in predictions.notes:
        warn(note)
    found = {"out": str(out), "nodes": len(predictions.ids)}
    found |= {"new": predictions.num_new, "classes": list(predictions.classes)}
    if json_:
        print_json(found | {"notes": list(predictions.notes)})
    else:
        print(f"{out}: {found['nodes']:,} nodes, {found['new']:,} of them new")


@opt.verb()
def score(
    predictions: Annotated[Path, typer.Argument(exists=True, metavar="PREDICTIONS")],
    truth: Annotated[Path, typer.Argument(exists=True, metavar="TRUTH")],
    label: str | None = None,
    id_: str | None = None,
    delimiter: str | None = None,
    json_: bool = False,
) -> None:
    """Compare predictions with known labels, node by node.

    Classes are scored by accuracy, macro F1, log loss and, if there are two, ROC AUC
    and average precision; numbers by R² and mean absolute error; sets and intervals by
    how often they contain the truth.

    Options:
        predictions: What `ecg-gnn predict` wrote.
        truth: A table with the known labels.
        label: Its column of labels (label, or the last).
        id_: Its column of ids (id, or the first).
    """
    from ecg_gnn.inference.known_labels import score_table

    read = partial(read_table, delimiter=delimiter)
    scores = score_table(read(predictions), read(truth), label=label, id_name=id_)
    if json_:
        print_json(scores)
    else:
        print_facts(scores)


@opt.verb()
def explain(
    model: ModelFolder,
    node: str,
    out: Path | None = None,
    most: int = MOST_EXPLAINED,
    json_: bool = False,
) -> None:
    """Show how a node's neighbours and columns affect its prediction.

    The effect of a neighbour is how much probability the predicted class loses when
    the edge from it is removed; that of a column, when a typical value replaces the
    node's own. For a predicted number, it is how far the number falls. ×2 marks a
    neighbour that two cross-fitted models found.

    Options:
        node: The id of a node of the model's graph.
        out: Also draw a picture: .png, .svg or .pdf.
        most: Neighbours per graph, and columns, to examine.
    """
    check_in_range("most", most, 1, None)
    if out is not None:
        check_format(out)
    from ecg_gnn.inference import explain_node, read_model
    from ecg_gnn.inference.explanation import draw_explanation

    loaded = read_model(model)
    with ProgressDisplay() as display:
        tell = display.begin("explain", "effects")
        explanation = explain_node(
            loaded, node, most, progress=lambda done, total: tell(done, total, math.nan)
        )
    if out is not None:
        draw_explanation(explanation, loaded.classes, out)
    if json_:
        print_json(explanation.to_dict())
        return
    kind = "class" if loaded.classes else "known"
    header = ["graph", "neighbour", kind, "predicted", "similarity", "effect"]
    rows = [
        [
            row.graph,
            row.id + (f" ×{row.times}" if row.times > 1 else ""),
            row.label or "",
            row.predicted,
            "" if row.similarity is None else f"{row.similarity:.3f}",
            f"{row.effect:+.4f}",
        ]
        for row in explanation.neighbours
    ]
    known = f", known to be {explanation.label}" if explanation.label else ""
    sure = explanation.probability
    predicted = explanation.predicted + ("" if sure is None else f" ({sure:.3f})")
    print(printable(f"{explanation.id}: {predicted}{known}"))
    print_table((header, rows))
    columns = [[row.name, f"{row.effect:+.4f}"] for row in explanation.columns]
    print_table((["own column", "effect"], columns))
    if out is not None:
        print(f"Picture: {out}")
