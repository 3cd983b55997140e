"""``ecg-gnn run``: baseline, ECG and control on one dataset."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ecg_gnn.cli import options as opt
from ecg_gnn.cli.options import merged, read_config, with_settings
from ecg_gnn.cli.running import run_and_show, warn_of_no_effect
from ecg_gnn.config import RunConfig
from ecg_gnn.config.embedders import EMBEDDING_HELP
from ecg_gnn.config.run_config import nest_options
from ecg_gnn.nn import MODULES, SPECIALISED

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
