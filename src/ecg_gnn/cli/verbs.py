"""The verbs of ``ecg-gnn``: listed at once, imported when one of them is called.

Torch and PyG take seconds to import, which a list of verbs does not need.
"""

import inspect
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from ecg_gnn._version import __version__


class Verb(NamedTuple):
    """Where a verb is, ``module:name``, and what the list of verbs says of it."""

    place: str
    summary: str


VERBS = {
    "run": Verb(
        "run_verb:run",
        "Train baseline, ECG and the identity control on the same splits, and compare.",
    ),
    "homophily": Verb(
        "homophily_verb:homophily",
        "Measure homophily of a graph and, with --embedding, of its evolved graph.",
    ),
    "knn": Verb(
        "knn:knn",
        "Find every row's nearest neighbours in a file, and write the edges to "
        "another.",
    ),
    "advise": Verb(
        "advise:advise",
        "Say whether an evolved graph helps on a graph, which one, and why.",
    ),
    "fit": Verb(
        "model_verbs:fit",
        "Fit a model, its baseline and its identity control, and keep the model.",
    ),
    "predict": Verb(
        "model_verbs:predict",
        "Write the class and the probabilities of nodes, known or new.",
    ),
    "explain": Verb(
        "model_verbs:explain",
        "Show a node's neighbours in both graphs: classes, similarity, effect.",
    ),
    "study": Verb(
        "study:app",
        "Run a recipe of many configurations into one store, and make its tables.",
    ),
    "data": Verb("data:app", "Find, inspect, check and fetch graphs."),
    "bench": Verb("bench:app", "Measure speed and memory here and now."),
}


@cache
def load(name: str) -> Any:
    """Import a verb and build its command, or its group of commands."""
    module, attribute = VERBS[name].place.split(":")
    verb = getattr(import_module(f"ecg_gnn.cli.{module}"), attribute)
    command: Any
    if isinstance(verb, typer.Typer):
        command = typer.main.get_group(verb)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(verb)
        command = typer.main.get_command(alone)
    command.name = name
    for each in (command, *getattr(command, "commands", {}).values()):
        each.help = _unwrapped(each.help)
    return command


def _unwrapped(text: str | None) -> str | None:
    """A docstring with paragraphs of one line, which the terminal may break."""
    if text is None:
        return None
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)


class Verbs(TyperGroup):
    """A group that imports the verb it is asked to run, and no other."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # For the list of verbs, and for suggestions where one is misspelt.
        self.commands = {
            name: TyperCommand(name, help=verb.summary) for name, verb in VERBS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The verb itself, where it is to run."""
        name, *rest = args
        if name in VERBS:
            return name, load(name), rest
        return super().resolve_command(ctx, args)  # which suggests others


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
