"""``ecg-gnn study table``: the paper's tables and a leaderboard, ours beside them."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import study_options as opt_study
from ecg_gnn.study.paper_tables import FORMATS, TABLES, make_table, render
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import check_choice
from ecg_gnn.system.files import write_text

_ENDINGS = {".md": "md", ".tex": "latex", ".csv": "csv", ".json": "json"}


def table(
    name: Annotated[
        str, typer.Argument(metavar="TABLE", help=f"One of {', '.join(TABLES)}.")
    ],
    store: opt_study.StoreFile,
    recipe: opt_study.OfRecipe = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help=f"One of {', '.join(FORMATS)}; by default what --out ends in, or md.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write instead of printing.")
    ] = None,
) -> None:
    """Make a table from a store, published numbers beside ours.

    results: every model plain, with ECG and with its controls. statistics: homophily
    before and after. hyperparameters: what validation chose. embeddings: every
    embedding. leaderboard: every model by its score, beside its published number and
    the best published result. CSV and JSON have every number raw.
    """
    check_choice("table", name, TABLES)
    if form is None:
        form = _ENDINGS.get("" if out is None else out.suffix, "md")
    check_choice("format", form, FORMATS)
    if out is not None:
        opt.check_apart(out, store)
    with Store.open(store) as opened:
        text = render(make_table(name, opened, recipe), form)
    if out is None:
        print(text, end="")
    else:
        write_text(out, text)
        print(f"Wrote {out}")
