"""``ecg-gnn run``: baseline, ECG and control on one dataset."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.options import (
    default_cache,
    merged,
    read_config,
    warn,
    warn_of_cross_fit,
    with_settings,
)
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig
from ecg_gnn.config.evolve_settings import EMBEDDING_HELP
from ecg_gnn.config.identity import BASELINE
from ecg_gnn.config.run_config import nest_options
from ecg_gnn.nn import MODULES, SPECIALISED
from ecg_gnn.pipeline.resolve import choose_variants
from ecg_gnn.scale import joined
from ecg_gnn.study import Record, Report
from ecg_gnn.study import run as run_all
from ecg_gnn.study.figure import draw
from ecg_gnn.study.table import (
    model_name,
    report_markdown,
    result_table,
    run_name,
    run_notes,
    statistics_table,
)
from ecg_gnn.system.checks import MissingExtraError
from ecg_gnn.system.files import write_text

_ROOT = "runs"


def warn_of_no_effect(settings: RunConfig, *, asked_for: bool) -> None:
    """Say so of options that change nothing.

    Args:
        settings: The run.
        asked_for: Whether its embeddings are the user's own choice.
    """
    warn_of_cross_fit(settings.embed.cross_fit, settings.embed.names)
    names = [name for name in settings.embed.names if name != "none"]
    if asked_for and names and choose_variants(settings) == [BASELINE]:
        text = f"it runs without {' or '.join(names)}"
        warn(f"{settings.model.name} has no place for an evolved graph: {text}")


def run_and_show(
    settings: RunConfig,
    *,
    data_root: Path | None,
    out: Path | None,
    jobs: int,
    workers: int,
    as_json: bool,
) -> None:
    """Run, write tables and print them; of joined processes the first one does."""
    train = partial(
        run_all,
        settings,
        data_root=data_root,
        out=out,
        out_root=_ROOT,
        cache=default_cache(),
        jobs=jobs,
        loader_workers=workers,
    )
    with joined() as own:
        if not own.is_first:
            train()
            return
        with ProgressDisplay() as display:
            report = train(
                on_progress=display.start,
                on_record=partial(_say_record, display, settings),
                on_reused=lambda count, total: display.say(
                    f"{count} of {total} trainings are in the output folder already"
                ),
            )
    assert report.folder is not None
    _write_tables(report, report.folder)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report, report.folder)


def _say_record(
    display: ProgressDisplay, settings: RunConfig, record: Record, done: int, total: int
) -> None:
    display.say(
        f"[{done}/{total}] split {record.split} {run_name(settings, record)}: "
        f"test {100 * record.test:.2f} at step {record.best_step} "
        f"({record.seconds:.1f} s)"
    )


def _write_tables(report: Report, folder: Path) -> None:
    write_text(folder / "results.md", report_markdown(report))
    try:
        draw(report, folder / "figure.png")
    except MissingExtraError as error:
        write_text(folder / "figure-missing.txt", f"{error}\n")


def _print(report: Report, folder: Path) -> None:
    for note in run_notes(report):
        print(f"Note: {note}")
    model = report.config.model
    name = model_name(model.backbone, model.name)
    print_table(result_table(report), f"{report.dataset} · {name}")
    print_table(statistics_table(report), "Homophily (evolved: mean over splits)")
    names = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    print(f"In {folder}: {', '.join(names)}")


_HELPS = {
    "embed.names": f"{EMBEDDING_HELP}. Repeat it to compare several; mlp,bgrl puts two "
    "evolved graphs into one model.",
    "model.name": f"Message passing: one of {', '.join(MODULES)}; or a whole network: "
    f"one of {', '.join(SPECIALISED)}.",
}


@with_settings(lambda name, setting: True, helps=_HELPS)
def run(
    settings: dict[str, Any],
    data_root: opt.DataRoot = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML or JSON with settings, the config.json of an earlier run for "
            "instance; options given here win over it."
        ),
    ] = None,
    workers: opt.Workers = 0,
    jobs: Annotated[
        int, typer.Option(help="Parallel runs, each in its own process.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder; if a run was interrupted there, it resumes. "
            "Default: runs/DATASET-MODEL-ID.",
            rich_help_panel=opt.OUTPUT,
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Train baseline, ECG and the identity control on the same splits, and compare.

    Everything lands in the output folder: settings, raw results of every split,
    versions, the data's checksum, tables and a figure. Without options it runs on a
    generated Minesweeper board in a few minutes.
    """
    asked = RunConfig.from_dict(merged(read_config(config), nest_options(settings)))
    warn_of_no_effect(asked, asked_for="embedding" in settings)
    run_and_show(
        asked, data_root=data_root, out=out, jobs=jobs, workers=workers, as_json=as_json
    )
