"""``ecg-gnn explain``: a node's neighbours in both graphs and their effect."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import print_json, print_table
from ecg_gnn.inference.explain import MOST, explain_node
from ecg_gnn.inference.explain_figure import draw_explanation
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.system.checks import check_choice, check_in_range, printable


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder.")],
    node: Annotated[str, typer.Option(help="The id of a node of the model's graph.")],
    out: Annotated[
        Path | None, typer.Option(help="Also draw a picture: .png, .svg or .pdf.")
    ] = None,
    most: Annotated[int, typer.Option(help="Neighbours to examine per graph.")] = MOST,
    as_json: opt.AsJson = False,
) -> None:
    """Show a node's neighbours in both graphs: classes, similarity, effect.

    The effect of a neighbour is how much probability the predicted class loses when
    the edge from it is removed. ×2 marks a neighbour found by two cross-fitted models.
    """
    check_in_range("most", most, 1, None)
    if out is not None:
        check_choice(f"ending of {out}", out.suffix.lower(), [".png", ".svg", ".pdf"])
    loaded = read_model(model)
    explanation = explain_node(loaded, node, most)
    if out is not None:
        draw_explanation(explanation, loaded.classes, out)
    if as_json:
        print_json(explanation.to_dict())
        return
    header = ["graph", "neighbour", "class", "predicted", "similarity", "effect"]
    rows = [
        [
            row.graph,
            row.id if row.times == 1 else f"{row.id} ×{row.times}",
            row.label or "",
            row.predicted,
            "" if row.similarity is None else f"{row.similarity:.3f}",
            f"{row.effect:+.4f}",
        ]
        for row in explanation.neighbours
    ]
    known = f", known to be {explanation.label}" if explanation.label else ""
    predicted = f"{explanation.predicted} ({explanation.probability:.3f})"
    print(printable(f"{explanation.id}: {predicted}{known}"))
    print_table((header, rows))
    if out is not None:
        print(f"Picture: {out}")
