"""``ecg-gnn study export``: a store as text that a repository can keep."""

from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import study_options as opt_study
from ecg_gnn.study.store import Store, write_records


def export(
    store: opt_study.StoreFile,
    out: Annotated[Path, typer.Option(help="The text to write: a .jsonl file.")],
    curve_points: Annotated[
        int,
        typer.Option(help="Steps to keep of every training curve; 0 keeps no curves."),
    ] = 25,
) -> None:
    """Write a store as lines of text: small, and readable in a diff.

    Scores, times, statistics and provenance are exact; training curves are thinned and
    rounded. Wherever a store is read, --store takes the text as well, and study merge
    makes a database of it again. The same records are the same text, whoever ran them.
    """
    with Store.open(store) as opened:
        written = write_records(opened, out, curve_points=curve_points)
    print(f"Wrote {out}: {written} units")
