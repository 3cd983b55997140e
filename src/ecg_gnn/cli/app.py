"""All verbs of ``ecg-gnn``."""

from typing import Annotated

import typer

from ecg_gnn._version import __version__
from ecg_gnn.cli.advise import advise
from ecg_gnn.cli.bench import app as bench_app
from ecg_gnn.cli.data import app as data_app
from ecg_gnn.cli.explain import explain
from ecg_gnn.cli.fit import fit
from ecg_gnn.cli.homophily import homophily
from ecg_gnn.cli.knn import knn
from ecg_gnn.cli.own_data import import_
from ecg_gnn.cli.predict import predict
from ecg_gnn.cli.run import run
from ecg_gnn.cli.study import app as study_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Evolving Computation Graphs: graph learning where neighbours disagree. "
        "Start with `ecg-gnn run`: it trains a GNN on a generated graph with and "
        "without an evolved graph, beside a control, in a few minutes."
    ),
)
app.command()(run)
app.command()(homophily)
app.command()(knn)
app.command()(advise)
app.command()(fit)
app.command()(predict)
app.command()(explain)
data_app.command("import")(import_)
app.add_typer(study_app, name="study")
app.add_typer(data_app, name="data")
app.add_typer(bench_app, name="bench")


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
