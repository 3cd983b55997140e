"""All verbs, in the order of ``ecg-gnn --help``.

They import Torch and PyG, which takes seconds, only when they have something to do.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from ecg_gnn._version import __version__
from ecg_gnn.cli import data, study
from ecg_gnn.cli.fit_verb import advise, fit
from ecg_gnn.cli.model_verbs import explain, predict, score
from ecg_gnn.cli.run_verb import homophily, knn, run
from ecg_gnn.system import interrupts

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Predict the labels of a graph's nodes, even where neighbours disagree. Start "
        "with a graph of your own: `ecg-gnn data import`, `fit`, `predict`. Or see "
        "what an evolved graph adds on a generated one: `ecg-gnn run`."
    ),
)
_OWN, _EXPERIMENTS, _TOOLS = "Your graph", "Experiments", "Tools"
for _verb in (advise, fit, predict, score, explain):
    app.command(rich_help_panel=_OWN)(_verb)
app.add_typer(data.app, name="data", rich_help_panel=_OWN)
for _verb in (run, homophily):
    app.command(rich_help_panel=_EXPERIMENTS)(_verb)
app.add_typer(study.app, name="study", rich_help_panel=_EXPERIMENTS)
app.command(rich_help_panel=_TOOLS)(knn)
_BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
if (_BENCHMARKS / "ecg_bench" / "command.py").is_file():  # in a checkout
    sys.path.append(str(_BENCHMARKS))
    from ecg_bench.command import app as bench

    app.add_typer(bench, name="bench", rich_help_panel=_TOOLS)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ecg-gnn {__version__}")
        raise typer.Exit


@app.callback()
def _before_verbs(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version.",
            callback=_print_version,
            is_eager=True,
        ),
    ] = False,
) -> None:
    """Hold the options that stand before a verb."""
    interrupts.begin()
