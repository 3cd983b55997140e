"""``ecg-gnn study report``: everything a study found, as one page."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import study_options as opt_study
from ecg_gnn.study.report import write_report
from ecg_gnn.study.store import Store


def report(
    store: opt_study.StoreFile,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path(
        "report.html"
    ),
    recipe: opt_study.OfRecipe = None,
) -> None:
    """Write one HTML file that shows a study: open it in a browser, offline.

    Where ECG helps, by how much, and whether it is more than identity; all tables to
    sort and filter; a leaderboard beside the best published results; effects, training
    curves and homophily; behind every number its records, tests and the command that
    computes it again.
    """
    opt.check_apart(out, store)
    with Store.open(store) as opened:
        write_report(opened, out, recipe)
    print(f"Wrote {out}")
