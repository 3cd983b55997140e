"""``ecg-gnn study``: many configurations over many splits, and their results."""

import sys
import textwrap
from collections.abc import Collection, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.terminal import ProgressDisplay, print_json, print_table
from ecg_gnn.config.classify_settings import read_assignments
from ecg_gnn.config.run_config import read_splits
from ecg_gnn.study.recipe import load_recipe, shipped_recipes
from ecg_gnn.study.store import Progress, Store, merge_stores, write_records
from ecg_gnn.study.table import full_name, model_name, row_name
from ecg_gnn.system.cells import Table
from ecg_gnn.system.checks import InputError, check_choice

if TYPE_CHECKING:
    from ecg_gnn.study.execute import StudyReport

app = typer.Typer(
    no_args_is_help=True,
    help="Run many configurations into one store; make tables and a report.",
)
_STATES = ("done", "failed", "running", "missing")


@app.command()
@opt.verb(recipes=", ".join(shipped_recipes()))
def run(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE")],
    store: Path,
    datasets: list[str] | None = None,
    models: list[str] | None = None,
    variants: list[str] | None = None,
    splits: str | None = None,
    jobs: int = 1,
    engine: str = "local",
    address: str | None = None,
    search: str | None = None,
    trials: int | None = None,
    prune: bool = False,
    search_seed: int = 0,
    device: str | None = None,
    data_root: Path | None = None,
    set_: list[str] | None = None,
    retry_failed: bool = False,
    json_: bool = False,
) -> None:
    """Run the parts of a recipe that are not in the store yet.

    If interrupted, rerun the command to resume: finished trainings are never lost or
    repeated. Several commands may fill one store at once, and stores from different
    machines can be merged. A failed training is kept with its error and does not stop
    the rest.

    Options:
        recipe: One of {recipes}, or a YAML file of your own.
        datasets: Only these datasets of the recipe, downloaded if needed; without it,
            datasets that are not here are skipped. Repeat it, or write a,b.
        models: Only these models of the recipe.
        variants: Only these variants: baseline, an embedding, a control. Repeat it, or
            write a,b (one variant if the recipe has a variant a,b of two graphs).
        splits: Such as 0-9 or 0,3,5, instead of the recipe's.
        jobs: Parallel trainings, each in its own process.
        engine: Where trainings run: local (this machine) or ray (a Ray cluster, one
            started here unless --address names another).
        address: A running Ray cluster: HOST:PORT, or auto for one here.
        search: Search the grid instead of trying all of it: tpe proposes --trials
            points for each dataset, model and variant, by their validation scores.
        trials: Points to try in each search, including earlier calls.
        prune: In a search, train split by split and stop trials that are worse than the
            best on the same splits (a paired test, from four splits on).
        search_seed: Random seed of a search.
        set_: A setting by its dotted name in every run, whatever the recipe says:
            train.precision=bf16, train.steps=100. Repeatable.
        retry_failed: Repeat units that failed.
    """
    asked = load_recipe(recipe).with_settings(read_assignments(set_ or []))
    known = {variant for part in asked.parts for variant in part.variants}
    wanted = {
        "datasets": _names_of(datasets),
        "models": _names_of(models),
        "variants": _names_of(variants, known),
    }
    asked.check_has(wanted)
    check_choice("engine", engine, ["local", "ray"])
    opt.check_address(address, engine)
    from ecg_gnn.study.execute import run_study
    from ecg_gnn.study.executors import Executor
    from ecg_gnn.study.grid import Only
    from ecg_gnn.study.ray_executor import RayExecutor
    from ecg_gnn.study.search import Search

    only = Only(**wanted, splits=None if splits is None else read_splits(splits))
    searched, how = None, dict[str, Any](prune=prune, seed=search_seed)
    if search is not None:
        searched = Search(sampler=search, trials=trials or 0, **how)
    elif trials or any(how.values()):
        raise InputError(
            "'search' must be tpe with --trials, --prune or --search-seed (got none)"
        )
    # Ray prints warnings on stdout, which is for results.
    with ProgressDisplay() as display, redirect_stdout(sys.stderr):
        executor = Executor(jobs)
        if engine == "ray":
            executor = RayExecutor(jobs=jobs, address=address)
        report = run_study(
            asked,
            store,
            only=only,
            search=searched,
            data_root=data_root,
            device=device or "auto",
            executor=executor,
            cache=opt.default_cache(),
            retry_failed=retry_failed,
            command=" ".join(["ecg-gnn", *sys.argv[1:]]),
            say=display.say,
            on_progress=display.begin,
        )
    if json_:
        print_json({**asdict(report), "store": str(store)})
    else:
        _print_study(report, store)


def _names_of(
    values: Sequence[str] | None, known: Collection[str] = ()
) -> list[str] | None:
    """Names given one by one or with commas, which a name may also contain.

    Generators, paths and known variants of two graphs may contain commas.
    """
    names: list[str] = []
    for value in values or ():
        compact = value.replace(" ", "")
        one = compact in known or ":" in value or "/" in value
        names += [compact if compact in known else value] if one else value.split(",")
    return [name.strip() for name in names] or None


def _print_study(report: "StudyReport", store: Path) -> None:
    counts = report.counts
    parts = [f"{counts.done} of {counts.total} done", f"{report.ran} of them now"]
    if counts.failed:
        hint = "study status --errors shows why, study run --retry-failed tries again"
        parts.append(f"{counts.failed} failed ({hint})")
    if counts.running:
        parts.append(f"{counts.running} running in other processes")
    print(f"{report.recipe}: {', '.join(parts)}. Records: {store}")
    from ecg_gnn.study.search import settings_text

    for cell in report.searched:
        ended = [f"{cell.done} trials done"]
        ended += [f"{cell.pruned} pruned"] if cell.pruned else []
        ended += [f"{cell.failed} failed"] if cell.failed else []
        best = "" if cell.best is None else f", best {settings_text(cell.best)}"
        val = "" if cell.val is None else f" (validation {100 * cell.val:.2f})"
        names = f"{cell.dataset} {cell.model} {cell.variant}"
        print(f"{names}: {', '.join(ended)}{best}{val}")


# The laboratory's verbs, by name: the library does not import its laboratory.
for _verb in ("table", "figure", "report"):
    app.command(_verb)(getattr(import_module("ecg_gnn_lab.cli"), _verb))


@app.command()
@opt.verb()
def status(
    store: Path, recipe: str | None = None, errors: bool = False, json_: bool = False
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

    Of trainings found in several stores, the first result is kept. The merged store is
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
        out: The text file to write: a .jsonl file.
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
