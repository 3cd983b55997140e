"""A run on the command line: what is shown while it goes, and what at its end."""

from functools import partial
from pathlib import Path

from ecg_gnn.cli.options import default_cache, warn, warn_of_cross_fit
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig
from ecg_gnn.config.variants import BASELINE
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
