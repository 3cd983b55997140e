"""``ecg-gnn study table``, ``study figure`` and ``study report``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import ProgressDisplay
from ecg_gnn.study.store import Store
from ecg_gnn.system.canvas import check_format
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import write_text
from ecg_gnn_lab.figures import FIGURES, draw_figure
from ecg_gnn_lab.report import gather, render_report
from ecg_gnn_lab.tables import FORMATS, TABLES, StudyTables

_ENDINGS = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}
_FIGURES = (*FIGURES, "tsne")


@opt.verb(tables=", ".join(TABLES), formats=", ".join(FORMATS))
def table(
    name: Annotated[str, typer.Argument(metavar="TABLE")],
    store: Path,
    recipe: str | None = None,
    format_: str | None = None,
    out: Path | None = None,
) -> None:
    """Make a table from a store, published numbers beside ours.

    results: every model plain, with ECG and with its controls. statistics: homophily
    before and after. hyperparameters: what validation chose. embeddings: every
    embedding. leaderboard: every model by its score, beside its published number and
    the best published result. CSV and JSON have every number raw.

    Options:
        name: One of {tables}.
        format_: One of {formats}; by default what --out ends in, or md.
        out: File to write instead of printing.
    """
    check_choice("table", name, TABLES)
    form = format_ or _ENDINGS.get("" if out is None else out.suffix, "md")
    check_choice("format", form, FORMATS)
    if out is not None:
        opt.check_apart(out, store)
    with Store.open(store) as opened:
        text = FORMATS[form](StudyTables(opened, recipe)[name])
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(f"Wrote {out}")


@opt.verb(figures=", ".join(_FIGURES))
def figure(
    name: Annotated[str, typer.Argument(metavar="FIGURE")],
    store: Path,
    out: Path,
    recipe: str | None = None,
    dataset: str | None = None,
    embedding: str | None = None,
    nodes: int = 5000,
    data_root: Path | None = None,
) -> None:
    """Draw one of a study's figures.

    effects: ECG minus baseline and minus identity, with intervals. curves: test score
    over training. homophily: before and after. tsne: a random GCN layer over the input
    graph and over the evolved one, which is taken from the cache or made anew.

    Options:
        name: One of {figures}.
        out: File to write: .png, .svg or .pdf.

    t-SNE only:
        dataset: Dataset, if the store has several.
        embedding: Embedding of the graph (mlp).
        nodes: Draw at most this many nodes.
    """
    check_choice("figure", name, _FIGURES)
    check_format(out)
    check_in_range("nodes", nodes, 10, None)
    if name != "tsne" and (dataset or embedding):
        raise InputError("'dataset' and 'embedding' are for the figure tsne only")
    with Store.open(store) as opened, ProgressDisplay() as display:
        if name != "tsne":
            draw_figure(name, StudyTables(opened, recipe), out)
        else:
            from ecg_gnn.pipeline.workspace import Workspace
            from ecg_gnn_lab.figures.tsne import draw_tsne

            source = embedding or "mlp"
            progress = partial(display.begin, source)
            draw_tsne(
                opened,
                out,
                num_nodes=nodes,
                recipe=recipe,
                dataset=dataset,
                data_root=data_root,
                embedding=source,
                workspace=Workspace(cache=opt.default_cache(), progress=progress),
            )
    print(f"Wrote {out}")


@opt.verb()
def report(
    store: Path, out: Path = Path("report.html"), recipe: str | None = None
) -> None:
    """Write one HTML file that shows a study: open it in a browser, offline.

    Where ECG helps, by how much, and whether it is more than identity; all tables to
    sort and filter; a leaderboard beside the best published results; effects, training
    curves and homophily; behind every number its records, tests and the command that
    computes it again.

    Options:
        out: The HTML file to write.
    """
    opt.check_apart(out, store)
    with Store.open(store) as opened:
        write_text(out, render_report(gather(StudyTables(opened, recipe))))
    print(f"Wrote {out}")
