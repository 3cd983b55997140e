"""The command ``ecg-gnn``."""

from typing import Annotated

import typer

from ecg_gnn._version import __version__
from ecg_gnn.cli.verbs import Verbs

app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Evolving Computation Graphs: graph learning where neighbours disagree. "
        "Start with `ecg-gnn run`: it trains a GNN on a generated graph with and "
        "without an evolved graph, beside a control, in a few minutes."
    ),
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"ecg-gnn {__version__}")
        raise typer.Exit


@app.callback()
def options(
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
