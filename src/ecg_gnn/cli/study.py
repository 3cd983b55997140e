"""``ecg-gnn study``: many configurations over many splits, and what came of them."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import study_options as opt_study
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.cli.study_figure import figure
from ecg_gnn.cli.study_progress import StudyLines
from ecg_gnn.cli.study_report import report
from ecg_gnn.cli.study_table import table
from ecg_gnn.study.execute import Listeners, StudyReport, run_study
from ecg_gnn.study.expand import Only
from ecg_gnn.study.recipe_file import load_recipe, shipped_recipes
from ecg_gnn.study.store import Progress, Store, merge_stores
from ecg_gnn.study.table import Table, model_name, row_name

app = typer.Typer(
    no_args_is_help=True,
    help="Run a recipe of many configurations into one store, and make its tables.",
)
app.command("table")(table)
app.command("figure")(figure)
app.command("report")(report)

RecipeName = Annotated[
    str,
    typer.Argument(
        metavar="RECIPE",
        help=f"One of {', '.join(shipped_recipes())}, or a YAML file of your own.",
    ),
]
_STATES = ("done", "failed", "running", "missing")


@app.command()
def run(
    recipe: RecipeName,
    store: opt_study.StoreFile,
    datasets: Annotated[
        list[str] | None,
        typer.Option(
            help="Only these datasets of the recipe, downloaded if need be; without "
            "it those that are not here are skipped. Repeat it, or write a,b."
        ),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Only these models of the recipe.")
    ] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option(help="Only these variants: baseline, an embedding, a control."),
    ] = None,
    splits: Annotated[
        str | None, typer.Option(help="Such as 0-9 or 0,3,5, instead of the recipe's.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Trainings at a time, each in its own process.")
    ] = 1,
    device: opt.Device = None,
    data_root: opt.DataRoot = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting by its dotted name in every run, whatever the recipe says: "
            "train.precision=bf16, train.steps=100. Repeatable.",
        ),
    ] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run again what failed.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Run whatever of a recipe is not in the store yet.

    Finished trainings are never lost or repeated, whatever kills this command; the
    same command goes on. Several of them may fill one store at once, and stores filled
    on different machines can be merged. Failures are kept with their errors and do not
    stop the rest.
    """
    only = Only(
        datasets=_names(datasets),
        models=_names(models),
        variants=variants or None,
        splits=opt.parse_splits(splits),
    )
    asked = load_recipe(recipe).with_settings(opt.parse_options(settings) or {})
    with ProgressDisplay() as display:
        lines = StudyLines(display)
        report = run_study(
            asked,
            store,
            only=only,
            data_root=data_root,
            device=device or "auto",
            jobs=jobs,
            cache=opt.default_cache(),
            retry_failed=retry_failed,
            command=" ".join(["ecg-gnn", *sys.argv[1:]]),
            listeners=Listeners(
                progress=lines.progress,
                ended=lines.ended,
                skipped=lines.skipped,
                found=lines.found,
            ),
        )
    if as_json:
        print_json({**asdict(report), "store": str(store)})
    else:
        _print_report(report, store)


def _names(values: Sequence[str] | None) -> list[str] | None:
    """Names given one by one or with commas; a generator has commas of its own."""
    found: list[str] = []
    for value in values or ():
        found += [value] if ":" in value or "/" in value else value.split(",")
    return [name.strip() for name in found] or None


def _print_report(report: StudyReport, store: Path) -> None:
    counts = report.counts
    parts = [f"{counts.done} of {counts.total} done", f"{report.ran} of them now"]
    if counts.failed:
        parts.append(
            f"{counts.failed} failed (study status --errors shows why, "
            "study run --retry-failed tries again)"
        )
    if counts.running:
        parts.append(f"{counts.running} running in other processes")
    print(f"{report.recipe}: {', '.join(parts)}. Records: {store}")


@app.command()
def status(
    store: opt_study.StoreFile,
    recipe: opt_study.OfRecipe = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Show the error of every failed unit.")
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Count what is done, failed, running and missing, row by row."""
    with Store.open(store) as opened:
        rows = opened.progress(recipe=recipe)
        failures = opened.failures(recipe=recipe)
    if as_json:
        print_json(
            {
                "rows": [asdict(row) for row in rows],
                "total": _total(rows),
                "failures": [
                    {**asdict(f.configuration), "split": f.split, "seed": f.seed}
                    | {"kind": f.kind, "error": f.error}
                    for f in failures
                ],
            }
        )
        return
    print_table(_status_table(rows), str(store))
    for failure in failures if errors else ():
        at = failure.configuration
        print(
            f"{at.dataset} {model_name(at.backbone, at.model)} "
            f"{row_name(at.variant, at.embedding)} split {failure.split} seed "
            f"{failure.seed}: {failure.kind}\n{failure.error}\n"
        )


def _total(rows: Sequence[Progress]) -> dict[str, int]:
    return {state: sum(getattr(row, state) for row in rows) for state in _STATES}


def _status_table(rows: Sequence[Progress]) -> Table:
    header = ["dataset", "model", "variant", *_STATES, "mean seconds"]
    found = []
    for row in rows:
        measured = row.task == "statistics"
        model = "(statistics)" if measured else model_name(row.backbone, row.model)
        counts = [getattr(row, state) for state in _STATES]
        seconds = f"{row.seconds / row.done:.1f}" if row.done else ""
        names = [row.dataset, model, row_name(row.variant, row.embedding)]
        found.append([*names, *(str(count or "") for count in counts), seconds])
    total = [str(count) for count in _total(rows).values()]
    return header, [*found, ["all", "", "", *total, ""]]


@app.command()
def merge(
    sources: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Stores to bring together.")
    ],
    store: opt_study.StoreFile,
    curves: Annotated[
        bool,
        typer.Option("--curves/--no-curves", help="Take training curves along."),
    ] = True,
    as_json: opt.AsJson = False,
) -> None:
    """Bring stores that were filled on different machines into one.

    What several have finished stays as it was in the first; the result is one file
    that can be copied while nobody writes to it.
    """
    found = merge_stores(sources, store, curves=curves)
    if as_json:
        print_json(asdict(found))
        return
    again = f", {found.twice} came twice" if found.twice else ""
    if found.different:
        again += f" and {found.different} of them with another test score"
    print(
        f"{store}: {found.records} records ({found.added} new{again}), "
        f"{found.failures} failures"
    )


@app.command()
def recipes(as_json: opt.AsJson = False) -> None:
    """List the recipes that come with the package."""
    found = [load_recipe(name) for name in shipped_recipes()]
    if as_json:
        print_json([{"name": r.name, "description": r.description} for r in found])
        return
    rows = [[recipe.name, recipe.description] for recipe in found]
    print_table((["recipe", "what it computes"], rows))
