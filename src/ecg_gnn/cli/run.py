"""``ecg-gnn run``: baseline, ECG and control on one dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import batch_options as batches
from ecg_gnn.cli import options as opt
from ecg_gnn.cli.running import run_and_show, warn_of_no_effect
from ecg_gnn.config import RunConfig
from ecg_gnn.nn import MODULES, SPECIALISED
from ecg_gnn.presets import QUICK
from ecg_gnn.reading import read_yaml
from ecg_gnn.system.checks import InputError


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
    cross_fit: opt.CrossFit = None,
    cross_fit_models: opt.CrossFitModels = None,
    k: opt.K = None,
    self_loops: opt.SelfLoops = None,
    similarity: opt.Similarity = None,
    symmetric: opt.Symmetric = None,
    edge_weights: opt.EdgeWeights = None,
    knn: opt.Knn = None,
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
    gate: opt.Gate = None,
    evolved_layers: opt.EvolvedLayers = None,
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
    weight_decay: Annotated[
        float | None,
        typer.Option(
            help="Weight decay of AdamW, the MLP embedding's as well (0).",
            rich_help_panel=opt.STEP_3,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Full-batch steps, each followed by an evaluation, or batches "
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
    label_input: opt.LabelInput = None,
    batch_size: batches.BatchSize = None,
    fanout: batches.Fanout = None,
    eval_every: batches.EvalEvery = None,
    workers: batches.Workers = 0,
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
            cross_fit=cross_fit,
            cross_fit_models=cross_fit_models,
        ),
        "evolve": opt.given(
            k=k,
            self_loops=opt.parse_self_loops(self_loops),
            similarity=similarity,
            symmetric=symmetric,
            weights=edge_weights,
            knn=knn,
        ),
        "model": opt.given(
            name=model,
            backbone=backbone,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            drop_edge=drop_edge,
            norm=norm,
            gate=gate,
            evolved_layers=evolved_layers,
            options=opt.parse_options(option),
        ),
        "train": opt.given(
            lr=lr,
            weight_decay=weight_decay,
            steps=steps,
            precision=precision,
            label_input=label_input,
            batch_size=batch_size,
            fanout=batches.parse_fanout(fanout),
            eval_every=eval_every,
        ),
    }
    settings = RunConfig.from_dict(merge(read_config(config), sections))
    warn_of_no_effect(settings, asked_for=bool(embedding))
    run_and_show(
        settings,
        data_root=data_root,
        out=out,
        jobs=jobs,
        workers=workers,
        as_json=as_json,
    )


def read_config(path: Path | None) -> dict[str, Any]:
    """Settings from a YAML or JSON file (JSON is YAML); none without a path."""
    if path is None:
        return {}
    if not path.is_file():
        raise InputError(f"'config' file {str(path)!r} does not exist")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not YAML or JSON: {error}") from None
    values = read_yaml(str(path), text)
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
