"""``ecg-gnn explain``: a node's neighbours in both graphs and what they add."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import print_json, print_table
from ecg_gnn.inference.explaining import MOST, explain_node
from ecg_gnn.inference.model_folder import read_model
from ecg_gnn.inference.picture import draw_explanation
from ecg_gnn.system.checks import check_choice, check_in_range, printable


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model folder.")],
    node: Annotated[str, typer.Option(help="The id of a node of the model's graph.")],
    out: Annotated[
        Path | None, typer.Option(help="Also draw a picture: .png, .svg or .pdf.")
    ] = None,
    most: Annotated[int, typer.Option(help="Neighbours to look at in a graph.")] = MOST,
    as_json: opt.AsJson = False,
) -> None:
    """Show a node's neighbours in both graphs: classes, similarity, effect.

    The effect of a neighbour is the probability that the predicted class loses when
    it is no longer one. ×2 marks one that two cross-fitted models have found.
    """
    check_in_range("most", most, 1, None)
    if out is not None:
        check_choice(f"ending of {out}", out.suffix.lower(), [".png", ".svg", ".pdf"])
    loaded = read_model(model)
    found = explain_node(loaded, node, most)
    if out is not None:
        draw_explanation(found, loaded.classes, out)
    if as_json:
        print_json(found.to_dict())
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
        for row in found.neighbours
    ]
    known = f", known to be {found.label}" if found.label else ""
    said = f"{found.id}: {found.predicted} ({found.probability:.3f}){known}"
    print(printable(said))
    print_table((header, rows))
    if out is not None:
        print(f"Picture: {out}")
