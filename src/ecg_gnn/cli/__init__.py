"""The command line: parse, call one function, print.

Verbs are listed at once, and imported when one of them is called: Torch and PyG take
seconds to import, which a list of verbs does not need.
"""

import io
import os
import re
import sqlite3
import sys
import warnings
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ecg_gnn._version import __version__
from ecg_gnn.system import interrupts
from ecg_gnn.system.checks import InputError, printable

# Newer typer carries its own click, older typer depends on it: the base class of
# every usage error is found through the one name that both export.
_UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_LONGEST = 2_000
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"
"""Beside ``src`` in a checkout; an installed package does not have it."""


# The modules that have more than one verb, or are not called like their verb.
_MODULES = {"run": "run_verb", "fit": "fit_verb"}
_MODULES |= dict.fromkeys(("homophily", "knn"), "graph_verbs")
_MODULES |= dict.fromkeys(("predict", "explain", "score"), "model_verbs")
_RESUMING = {"run", "fit", "advise", "study"}
PANELS = {
    "Your graph": {
        "data": "Find, inspect, check, fetch and import graphs.",
        "advise": "Say whether an evolved graph helps on yours, which one, and why.",
        "fit": "Find the model that predicts best on a graph, and keep it.",
        "predict": "Predict nodes: classes with probabilities, or numbers.",
        "score": "Compare predictions with known labels, node by node.",
        "explain": "Show how a node's neighbours and columns affect its prediction.",
    },
    "Experiments": {
        "run": "Train baseline, ECG and its controls on the same splits, and compare.",
        "study": "Run many configurations into one store; make tables and a report.",
        "homophily": "Measure homophily of a graph and, with --embedding, of its "
        "evolved graph.",
    },
    "Tools": {
        "knn": "Find the nearest neighbours of every row in a file; write the edges.",
        "bench": "Measure speed and memory on this machine.",
    },
}
"""What the list of verbs says about each, group by group."""
VERBS = {name: text for verbs in PANELS.values() for name, text in verbs.items()}


def main() -> None:
    """Run ``ecg-gnn``; a user's mistake is one line on stderr and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # ± and − where there is no Unicode
            stream.reconfigure(errors="replace")
    status = 0
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            status = _run()
        sys.stdout.flush()
    except OSError as error:
        # A reader that stopped early (`| head`) is not an error; a full disk is.
        if not isinstance(error, BrokenPipeError) and not status:
            _fail(f"the output cannot be written ({error.strerror})", 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = status or 1
    except KeyboardInterrupt:  # after the verb
        status = _interrupted()
    interrupts.end()
    raise SystemExit(status)


def _run() -> int:
    try:
        status = app(standalone_mode=False)
    except InputError as error:
        return _fail(str(error), 2)
    except _UsageError as error:  # without a message, help was shown
        return _fail(_with_value(error.format_message()), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        raise
    except (OSError, sqlite3.Error) as error:  # a full disk, a file that vanished
        return _fail(str(error), 1)
    except (MemoryError, RuntimeError) as error:
        from ecg_gnn.system.machine import out_of_memory  # with torch: not at once

        if not out_of_memory(error):
            raise
        return _fail(f"not enough memory: {error}", 1)
    if status == interrupts.STATUS:  # newer typer returns it, older ones raise Abort
        return _interrupted()
    return status if isinstance(status, int) else 0


def _interrupted() -> int:
    interrupts.end()
    kept = ": finished trainings are kept, rerun the command to resume"
    resumes = _RESUMING & set(sys.argv[1:2])
    return _fail(f"interrupted{kept if resumes else ''}", interrupts.STATUS)


def _with_value(message: str) -> str:
    """The message of an invalid value, with the value."""
    option = re.match(r"Invalid value for '(--[\w-]+)'", message)
    words = sys.argv[1:] if option else []
    for place in reversed(range(len(words))):  # if given twice, the last one counts
        name, equals, value = words[place].partition("=")
        if option and name == option[1] and (equals or words[place + 1 :]):
            came = value if equals else words[place + 1]
            return f"{message} (got {came!r:.60})"
    return message


def _show_warning(message: Warning | str, *_: object) -> None:
    """One line, without the place in the source, which means nothing to a user."""
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(message: str, status: int) -> int:
    if line := printable(" ".join(message.split())):
        shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
        print(f"error: {shown}", file=sys.stderr)
    return status


@cache
def load(name: str) -> Any:
    """Import a verb and build its command, or its group of commands."""
    module = f"ecg_gnn.cli.{_MODULES.get(name, name)}"
    if name == "bench":
        module = "ecg_bench.command"
        if not (BENCHMARKS / "ecg_bench" / "command.py").is_file():
            raise InputError(
                f"'bench' needs a checkout of ecg-gnn (got none at {BENCHMARKS})"
            )
        if str(BENCHMARKS) not in sys.path:
            sys.path.append(str(BENCHMARKS))
    home = import_module(module)
    command: Any
    if group := getattr(home, "app", None):
        command = typer.main.get_group(group)
    else:
        alone = typer.Typer(add_completion=False)
        alone.command(name)(getattr(home, name))
        command = typer.main.get_command(alone)
    command.name = name
    return command


class Verbs(TyperGroup):
    """A group that imports the verb it is asked to run, and no other."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # For the list of verbs, and for suggestions where one is misspelt.
        self.commands = {
            name: TyperCommand(name, help=text, rich_help_panel=panel)
            for panel, verbs in PANELS.items()
            for name, text in verbs.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """The verb itself, to be run."""
        name, *rest = args
        if name in VERBS:
            command = load(name)
            interrupts.begin()
            return name, command, rest
        return super().resolve_command(ctx, args)  # which suggests others


app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help=(
        "Predict the labels of a graph's nodes, even where neighbours disagree. Start "
        "with a graph of your own: `ecg-gnn data import`, `fit`, `predict`. Or see "
        "what an evolved graph adds on a generated one: `ecg-gnn run`."
    ),
)


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
