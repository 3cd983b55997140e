"""``ecg-gnn study figure``: effects, training curves, homophily, t-SNE."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import study_options as opt_study
from ecg_gnn.cli.show import ProgressDisplay
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.study.figures import FIGURES, draw_tsne, project
from ecg_gnn.study.figures.canvas import check_format
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError, check_choice, check_in_range

_TSNE = "t-SNE only"
_NAMES = (*FIGURES, "tsne")


def figure(
    name: Annotated[
        str, typer.Argument(metavar="FIGURE", help=f"One of {', '.join(_NAMES)}.")
    ],
    store: opt_study.StoreFile,
    out: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    recipe: opt_study.OfRecipe = None,
    dataset: Annotated[
        str | None,
        typer.Option(help="Which, where there are several.", rich_help_panel=_TSNE),
    ] = None,
    embedding: Annotated[
        str | None,
        typer.Option(help="Of which evolved graph: mlp.", rich_help_panel=_TSNE),
    ] = None,
    nodes: Annotated[
        int, typer.Option(help="Draw at most so many nodes.", rich_help_panel=_TSNE)
    ] = 5000,
    data_root: opt.DataRoot = None,
) -> None:
    """Draw one of a study's figures.

    effects: ECG minus baseline and minus identity, with intervals. curves: test score
    over training. homophily: before and after. tsne: a random GCN layer over the input
    graph and over the evolved one, which is taken from the cache or made anew.
    """
    check_choice("figure", name, _NAMES)
    check_format(out)
    check_in_range("nodes", nodes, 10, None)
    if name != "tsne" and (dataset or embedding):
        raise InputError("'dataset' and 'embedding' are for the figure tsne only")
    with Store.open(store) as opened:
        if name != "tsne":
            FIGURES[name](opened, out, recipe)
        else:
            opened.check_recipe(recipe)
            _tsne(opened, out, recipe, dataset, embedding or "mlp", nodes, data_root)
    print(f"Wrote {out}")


def _tsne(
    store: Store,
    out: Path,
    recipe: str | None,
    dataset: str | None,
    embedding: str,
    nodes: int,
    data_root: Path | None,
) -> None:
    with ProgressDisplay() as display:
        projection = project(
            store,
            dataset=dataset,
            embedding=embedding,
            recipe=recipe,
            data_root=data_root,
            workspace=Workspace(
                cache=opt.default_cache(),
                progress=lambda work: display.start(embedding, work),
            ),
            num_nodes=nodes,
        )
    draw_tsne(projection, out)
