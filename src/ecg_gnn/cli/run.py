"""``ecg-gnn run``: baseline, ECG and control on one dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from ecg_gnn.checks import InputError, MissingExtraError
from ecg_gnn.cli import options as opt
from ecg_gnn.cli.show import ProgressDisplay, print_json, print_table
from ecg_gnn.config import RunConfig
from ecg_gnn.files import write_text
from ecg_gnn.nn import MODULES, SPECIALISED
from ecg_gnn.presets import QUICK
from ecg_gnn.study import Record, Report
from ecg_gnn.study import run as run_all
from ecg_gnn.study.figure import draw
from ecg_gnn.study.table import (
    report_markdown,
    result_table,
    row_name,
    statistics_table,
)


def run(
    dataset: opt.Dataset = None,
    data_root: opt.DataRoot = None,
    preset: opt.Preset = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="YAML or JSON with settings, the config.json of an earlier run for "
            "instance; options given here win over it."
        ),
    ] = None,
    splits: Annotated[
        str | None,
        typer.Option(help="Such as 0-9 or 0,3,5; quick runs the first five."),
    ] = None,
    random_splits: Annotated[
        bool | None,
        typer.Option(
            "--random-splits/--own-splits",
            help="Fresh stratified 50/25/25 splits from the seed.",
        ),
    ] = None,
    seed: opt.Seed = None,
    device: opt.Device = None,
    engine: opt.EngineName = None,
    embedding: Annotated[
        list[str] | None,
        typer.Option(
            help=f"{opt.EMBEDDING_HELP} Repeat it to compare several; mlp,bgrl puts "
            "two evolved graphs into one model.",
            rich_help_panel=opt.STEP_1,
        ),
    ] = None,
    embed_layers: opt.EmbedLayers = None,
    embed_hidden: opt.EmbedHidden = None,
    embed_steps: opt.EmbedSteps = None,
    embed_lr: opt.EmbedLr = None,
    k: opt.K = None,
    self_loops: opt.SelfLoops = None,
    similarity: opt.Similarity = None,
    symmetric: opt.Symmetric = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"Message passing: one of {', '.join(MODULES)}; or a whole network: "
            f"one of {', '.join(SPECIALISED)}.",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            help="benchmark (residual blocks, as in the paper) or tuned (gcn, sage, "
            "gat with a linear skip).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    layers: Annotated[
        int | None,
        typer.Option(
            help=f"Number of layers (quick: {QUICK.layers}).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    hidden: Annotated[
        int | None,
        typer.Option(
            help=f"Width (quick: {QUICK.hidden}).", rich_help_panel=opt.STEP_3
        ),
    ] = None,
    dropout: Annotated[
        float | None,
        typer.Option(help="Dropout rate (0.2).", rich_help_panel=opt.STEP_3),
    ] = None,
    drop_edge: Annotated[
        float | None,
        typer.Option(
            help="Share of evolved edges dropped in every layer of every step "
            f"(quick: {QUICK.drop_edge}).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    norm: Annotated[
        str | None,
        typer.Option(
            help="Of the tuned backbone: batch, layer or none.",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="NAME=VALUE: what only one of the whole networks has, such as "
            "alpha=0.2 of gpr-gnn. Repeat it for several.",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(
            help=f"Learning rate of AdamW (quick: {QUICK.lr}).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Full-batch steps, each followed by an evaluation "
            f"(quick: {QUICK.steps}).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            help="auto, fp32, tf32 (GPU) or bf16.", rich_help_panel=opt.STEP_3
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(help="Trainings at a time, each in its own process.")
    ] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Output folder; a run interrupted there goes on. "
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
    sections = {
        "": opt.given(
            dataset=dataset,
            preset=preset,
            splits=opt.parse_splits(splits),
            random_splits=random_splits,
            seed=seed,
            device=device,
            engine=engine,
        ),
        "embed": opt.given(
            names=embedding or None,
            layers=embed_layers,
            hidden=embed_hidden,
            steps=embed_steps,
            lr=embed_lr,
        ),
        "evolve": opt.given(
            k=k,
            self_loops=opt.parse_self_loops(self_loops),
            similarity=similarity,
            symmetric=symmetric,
        ),
        "model": opt.given(
            name=model,
            backbone=backbone,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            drop_edge=drop_edge,
            norm=norm,
            options=opt.parse_options(option),
        ),
        "train": opt.given(lr=lr, steps=steps, precision=precision),
    }
    settings = RunConfig.from_dict(merge(read_config(config), sections))
    report = _run_with_progress(settings, data_root, out, jobs)
    assert report.folder is not None
    _write_tables(report, report.folder)
    if as_json:
        print_json(report.to_dict())
    else:
        _print(report, report.folder)


def read_config(path: Path | None) -> dict[str, Any]:
    """Settings from a YAML or JSON file (JSON is YAML); none without a path."""
    if path is None:
        return {}
    if not path.is_file():
        raise InputError(f"'config' file {str(path)!r} does not exist")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not YAML or JSON: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a mapping of settings (got {values!r})")
    return values


def merge(
    base: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Put the given options over the file's settings, section by section."""
    merged = {**base, **sections[""]}
    for name, values in sections.items():
        if name and values:
            inner = merged.get(name, {})
            if isinstance(inner, dict):  # anything else is refused with the config
                merged[name] = {**inner, **values}
                if isinstance(inner.get("options"), dict) and "options" in values:
                    merged[name]["options"] = {**inner["options"], **values["options"]}
    return merged


def _run_with_progress(
    settings: RunConfig, data_root: Path | None, out: Path | None, jobs: int
) -> Report:
    with ProgressDisplay() as display:

        def on_record(record: Record, done: int, total: int) -> None:
            name = row_name(record.variant, record.embedding)
            display.say(
                f"[{done}/{total}] split {record.split} {name}: "
                f"test {100 * record.test:.2f} at step {record.best_step} "
                f"({record.seconds:.1f} s)"
            )

        return run_all(
            settings,
            data_root=data_root,
            out=out,
            out_root="runs",
            cache=opt.default_cache(),
            jobs=jobs,
            on_progress=display.start,
            on_record=on_record,
            on_reused=lambda count, total: display.say(
                f"{count} of {total} trainings are in the output folder already"
            ),
        )


def _write_tables(report: Report, folder: Path) -> None:
    write_text(folder / "results.md", report_markdown(report))
    try:
        draw(report, folder / "figure.png")
    except MissingExtraError as error:
        write_text(folder / "figure-missing.txt", f"{error}\n")


def _print(report: Report, folder: Path) -> None:
    if report.note:
        print(f"Note: {report.note}")
    print_table(result_table(report), f"{report.dataset} · {report.config.model.name}")
    print_table(statistics_table(report), "Homophily (evolved: mean over splits)")
    names = [path.name for path in sorted(folder.iterdir()) if path.is_file()]
    print(f"In {folder}: {', '.join(names)}")
