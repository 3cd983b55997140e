"""``ecg-gnn study``: many configurations over many splits, and their results."""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.study_run import run
from ecg_gnn.cli.terminal import print_json, print_table
from ecg_gnn.study.recipe import load_recipe, shipped_recipes
from ecg_gnn.study.store import Progress, Store, merge_stores, write_records
from ecg_gnn.study.table import full_name, model_name, row_name
from ecg_gnn.system.cells import Table

app = typer.Typer(
    no_args_is_help=True,
    help="Run many configurations into one store; make tables and a report.",
)
app.command("run")(run)
# The laboratory's verbs, by name: the library does not import its laboratory.
for _verb in ("table", "figure", "report"):
    app.command(_verb)(getattr(import_module("ecg_gnn_lab.cli"), _verb))

_STATES = ("done", "failed", "running", "missing")


@app.command()
@opt.verb()
def status(
    store: Path,
    recipe: str | None = None,
    errors: bool = False,
    json_: bool = False,
) -> None:
    """Count what is done, failed, running and missing, row by row.

    Options:
        errors: Show the error of every failed unit.
    """
    with Store.open(store) as opened:
        rows = opened.progress(recipe=recipe)
        failures = opened.failures(recipe=recipe)
    if json_:
        failed = [
            {**asdict(f.configuration), "split": f.split, "seed": f.seed}
            | {"kind": f.kind, "error": f.error}
            for f in failures
        ]
        counted = {"rows": [asdict(row) for row in rows], "total": _total(rows)}
        print_json({**counted, "failures": failed})
        return
    print_table(_status_table(rows), str(store))
    for failure in failures if errors else ():
        unit = f"split {failure.split} seed {failure.seed}: {failure.kind}"
        print(f"{full_name(failure.configuration)} {unit}\n{failure.error}\n")


def _total(rows: Sequence[Progress]) -> dict[str, int]:
    return {state: sum(getattr(row, state) for row in rows) for state in _STATES}


def _status_table(rows: Sequence[Progress]) -> Table:
    header = ["dataset", "model", "variant", *_STATES, "mean seconds"]
    lines = []
    for row in rows:
        measured = row.task == "statistics"
        model = "(statistics)" if measured else model_name(row.backbone, row.model)
        counts = [getattr(row, state) for state in _STATES]
        seconds = f"{row.seconds / row.done:.1f}" if row.done else ""
        names = [row.dataset, model, row_name(row.variant, row.embedding, row.tags)]
        lines.append([*names, *(str(count or "") for count in counts), seconds])
    total = [str(count) for count in _total(rows).values()]
    return header, [*lines, ["all", "", "", *total, ""]]


@app.command()
@opt.verb()
def merge(
    sources: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    store: Path,
    curves: bool = True,
    json_: bool = False,
) -> None:
    """Merge stores that were filled on different machines into one.

    Of units that several stores have, the first result is kept. The merged store is
    one file that can be copied while nobody writes to it. Texts of study export can be
    merged, too.

    Options:
        sources: Stores to merge.
        curves: Keep training curves.
    """
    merged = merge_stores(sources, store, curves=curves)
    if json_:
        print_json(asdict(merged))
        return
    counts = f"{merged.records} records ({merged.added} new)"
    print(f"{store}: {counts}, {merged.failures} failures")


@app.command()
@opt.verb()
def export(store: Path, out: Path, curve_points: int = 25) -> None:
    """Write a store as lines of text: small, and readable in a diff.

    Scores, times, statistics and provenance are exact; training curves are thinned and
    rounded. Commands that read a store also read the text, and study merge turns it
    back into a database. The same records always give the same text.

    Options:
        out: The text to write: a .jsonl file.
        curve_points: Steps to keep of every training curve; 0 keeps no curves.
    """
    with Store.open(store) as opened:
        written = write_records(opened, out, curve_points=curve_points)
    print(f"Wrote {out}: {written} units")


@app.command()
@opt.verb()
def recipes(json_: bool = False) -> None:
    """List the recipes that come with the package."""
    shipped = [load_recipe(name) for name in shipped_recipes()]
    if json_:
        print_json([{"name": r.name, "description": r.description} for r in shipped])
        return
    for recipe in shipped:
        print(recipe.name)
        print(textwrap.indent(textwrap.fill(recipe.description, 84), "    "))
