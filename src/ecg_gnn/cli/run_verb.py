"""``ecg-gnn run``: baseline, ECG and control on one dataset."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn.cli import options as opt
from ecg_gnn.cli import terminal
from ecg_gnn.cli.terminal import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig, declared
from ecg_gnn.config.classify_settings import BY_HOMOPHILY, MODULES, SPECIALISED
from ecg_gnn.config.embedders import EMBEDDING_HELP
from ecg_gnn.config.identity import BASELINE
from ecg_gnn.config.run_config import nest_options
from ecg_gnn.reading import read_text, read_yaml
from ecg_gnn.study import run_figure, table
from ecg_gnn.study.verdict import verdict
from ecg_gnn.system.cells import without_html
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.files import write_text

if TYPE_CHECKING:
    from ecg_gnn.study import Record, Report


def _read_config(path: Path | None) -> dict[str, Any]:
    """Settings from a YAML or JSON file (JSON is YAML); none without a path."""
    if path is None:
        return {}
    values = read_yaml(str(path), read_text(path))
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of settings (got {values!r})")
    return values


# What `fit`, `advise` and the estimators choose, too.
_DEFAULTS = {"preset": "auto", "model": {"name": BY_HOMOPHILY}}


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Settings with others over them, section by section."""
    result = dict(base)
    for name, value in over.items():
        below = result.get(name, {})
        if not isinstance(value, dict):
            result[name] = value
        elif isinstance(below, dict):  # else it is no section, which is refused later
            result[name] = _merged(below, value)
    return result


_HELPS = {
    "embed.names": f"{EMBEDDING_HELP}. Repeat it to compare several; mlp,bgrl puts two "
    "evolved graphs into one model.",
    "model.name": f"Message passing: one of {', '.join(MODULES)} (gcn or sage, by "
    f"homophily); or a whole network: one of {', '.join(SPECIALISED)}.",
}


@opt.verb(declared(), helps=_HELPS)
def run(
    settings: dict[str, Any],
    data_root: Path | None = None,
    config: Path | None = None,
    workers: int = 0,
    jobs: int = 1,
    out: Path | None = None,
    json_: bool = False,
) -> None:
    """Train baseline, ECG and its controls on the same splits, and compare.

    The output folder gets everything: settings, raw results of every split, versions,
    the data's checksum, tables and a figure. Without options it runs on a generated
    Minesweeper board in a few minutes. Options that are not given are chosen by the
    graph, as in `fit` and `advise`.

    Options:
        config: YAML or JSON with settings, such as the config.json of an earlier run;
            options given here take precedence.
        jobs: Parallel runs, each in its own process.

    Graphs too large for full-batch steps:
        workers: Processes that prepare batches ahead; results stay the same.

    Output:
        out: Output folder; a run that was interrupted there is resumed. Default:
            runs/DATASET-MODEL-ID.
    """
    read = _merged(_DEFAULTS, _read_config(config))
    asked = RunConfig.from_dict(_merged(read, nest_options(settings)))
    terminal.warn_of_cross_fit(asked.embed.cross_fit, asked.embed.names)
    names = [name for name in asked.embed.names if name != "none"]
    from ecg_gnn.pipeline import choose_variants
    from ecg_gnn.study import run as run_all

    if "embedding" in settings and names and choose_variants(asked) == [BASELINE]:
        text = f"it runs without {' or '.join(names)}"
        terminal.warn(f"{asked.model.name} has no place for an evolved graph: {text}")
    display = ProgressDisplay()

    def on_record(record: "Record", done: int, total: int) -> None:
        display.say(
            f"[{done}/{total}] split {record.split} {table.run_name(asked, record)}: "
            f"test {100 * record.test:.2f} at step {record.best_step} "
            f"({record.seconds:.1f} s)"
        )

    def on_reused(count: int, total: int) -> None:
        display.say(f"{count} of {total} trainings are in the output folder already")

    with display:
        report = run_all(
            asked,
            data_root=data_root,
            out=out,
            out_root="runs",
            cache=opt.default_cache(),
            jobs=jobs,
            loader_workers=workers,
            on_progress=display.start,
            on_record=on_record,
            on_reused=on_reused,
        )
    assert report.folder is not None
    said = "\n\n".join([table.report_markdown(report), *verdict(report), ""])
    write_text(report.folder / "results.md", without_html(said))
    try:
        run_figure.draw(report, report.folder / "figure.png")
    except MissingExtraError as error:
        write_text(report.folder / "figure-missing.txt", f"{error}\n")
    if json_:
        print_json(report.to_dict() | {"verdict": " ".join(verdict(report))})
    else:
        _print(report, report.folder)


def _print(report: "Report", folder: Path) -> None:
    for note in table.run_notes(report):
        print(f"Note: {note}")
    model = report.config.model
    name = table.model_name(model.backbone, model.name)
    print_table(table.result_table(report), f"{report.dataset} · {name}")
    print_table(table.statistics_table(report), "Homophily (evolved: mean over splits)")
    for sentence in verdict(report):
        print(sentence)
    names = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    print(f"In {folder}: {', '.join(names)}")
