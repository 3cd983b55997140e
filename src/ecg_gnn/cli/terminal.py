"""What verbs share: options on one side; progress, tables and JSON on the other."""

import inspect
import json
import math
import sys
import time
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich import progress
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ecg_gnn.config import Setting, declared, reads_labels
from ecg_gnn.config.classify_settings import check_model
from ecg_gnn.config.embedders import check_embedding
from ecg_gnn.data.catalogue import find_source
from ecg_gnn.system.checks import InputError, printable
from ecg_gnn.system.files import cache_folder

if TYPE_CHECKING:
    from ecg_gnn.embed import EmbeddingCache
    from ecg_gnn.system.cells import Table

STEP_1, STEP_2 = "Step 1: embed", "Step 2: evolve"
STEP_3, OUTPUT = "Step 3: classify", "Output"
_PANELS = {"embed": STEP_1, "evolve": STEP_2, "model": STEP_3, "train": STEP_3}
DataRoot = Annotated[
    Path | None,
    typer.Option(
        help="Folder with the official .npz files (the variable ECG_DATA, or else the "
        "cache)."
    ),
]
Device = Annotated[str | None, typer.Option(help="Device: auto, cpu, cuda or cuda:N.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print only JSON.", rich_help_panel=OUTPUT)
]


def with_settings(
    wanted: Callable[[str, Setting], bool],
    *,
    preset: str = "auto",
    helps: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb an option for every wanted setting.

    The verb's parameter ``settings`` gets those that were typed, by the names of their
    options; its other parameters are options as they are. ``--help`` shows the values
    of a preset, and help texts that are known here only, by dotted name.
    """
    by_name = {
        name: one
        for name, one in declared().items()
        if one.option and wanted(name, one)
    }

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        options = [
            _option(name, one, preset, helps.get(name)) for name, one in by_name.items()
        ]

        def run(**values: Any) -> None:
            typed = [(one, values.pop(str(one.option))) for one in by_name.values()]
            settings = {
                str(one.option): value if one.read is None else one.read(value)
                for one, value in typed
                if value is not None and value != []
            }
            _check_names(settings | values)
            verb(settings=settings, **values)

        rest = [
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in own
            if parameter.name != "settings"
        ]
        run.__signature__ = inspect.Signature([*options, *rest])  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in [*options, *rest]}
        run.__doc__, run.__name__ = verb.__doc__, verb.__name__
        return run

    return decorate


def _check_names(given: Mapping[str, Any]) -> None:
    """Refuse unknown names before torch is loaded to use the known ones."""
    if given.get("dataset") is not None:
        find_source(given["dataset"])
    check_model(given.get("model", "gcn"), given.get("backbone", "benchmark"))
    for name in given.get("embedding", ()):
        check_embedding(name)


def _option(
    name: str, one: Setting, preset: str, help: str | None
) -> inspect.Parameter:
    text = help or one.help
    value = one.presets.get(preset, one.presets.get("quick"))
    if callable(value):
        text += " (by size)"
    elif value is not None:
        text += f" ({preset}: {value})"
    flag = one.flag or f"--{str(one.option).replace('_', '-')}"
    details = typer.Option(
        flag,
        help=text if text.endswith(".") else f"{text}.",
        metavar=one.metavar,
        rich_help_panel=one.panel or _PANELS.get(name.partition(".")[0]),
    )
    origin = typing.get_origin(one.type)
    typed_as: Any = str if origin in (Literal, tuple) else one.type
    if origin is dict or (origin is tuple and one.read is None):
        typed_as = list[str]
    return inspect.Parameter(
        str(one.option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[typed_as | None, details],
    )


def warn(text: str) -> None:
    """Warn the user on stderr, apart from what is printed."""
    print(f"warning: {printable(text)}", file=sys.stderr)


def warn_of_cross_fit(folds: int | None, embeddings: Iterable[str]) -> None:
    """Warn if cross-fitting changes nothing because no embedding reads labels."""
    names = tuple(embeddings)
    if folds and not any(map(reads_labels, names)):
        text = f"no labels are read by {' or '.join(names)}"
        warn(f"--cross-fit changes nothing: {text}")


def check_apart(out: Path, *inputs: str | Path | None) -> None:
    """Refuse to write over what is being read."""
    for path in inputs:
        if path is not None and out.resolve() == Path(path).resolve():
            raise InputError(f"'out' must be another file than {str(path)!r}")


def default_cache() -> "EmbeddingCache":
    """Where embeddings are kept: ``ECG_CACHE``, else the user's cache."""
    from ecg_gnn.embed import EmbeddingCache  # with PyG: seconds, for who embeds

    return EmbeddingCache(cache_folder("embeddings"))


StoreFile = Annotated[
    Path,
    typer.Option(
        help="The SQLite file with the study's records; to read, also the text that "
        "study export makes of it."
    ),
]
OfRecipe = Annotated[
    str | None,
    typer.Option(help="Only what belongs to this recipe; a store may hold several."),
]


_QUIET_SECONDS = 20  # between lines without a terminal
_PIPE_WIDTH = 10_000
_MAX_PARTS = 12  # of a dictionary in one line


def print_json(value: Any) -> None:
    """Print JSON, and nothing else, on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(table: "Table", title: str | None = None) -> None:
    """Print a table; cells wrap on a terminal and stay whole in a pipe."""
    header, rows = table
    # Text, not str: brackets in a name are not markup.
    shown = RichTable(
        title=Text(title or ""), title_justify="left", header_style="bold"
    )
    for place, name in enumerate(header):
        shown.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(printable(cell)) for cell in row))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width).print(shown)


def print_facts(facts: Mapping[str, Any]) -> None:
    """Print a line per fact, without those that are empty."""
    for key, value in facts.items():
        if shown := value_text(value):
            print(f"{key.replace('_', ' '):>24}  {printable(shown)}")


def value_text(value: Any) -> str:
    """A plain value as people read it; of a dictionary, the first entries."""
    if isinstance(value, dict):
        parts = [f"{key} {value_text(part)}" for key, part in value.items()]
        more = len(parts) - _MAX_PARTS
        rest = f", and {more} more" if more > 0 else ""
        return ", ".join(parts[:_MAX_PARTS]) + rest
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if value is None:
        return "undefined"
    return f"{value:,}" if isinstance(value, int) else str(value)


class ProgressDisplay:
    """A progress bar on a terminal, an occasional line elsewhere."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self.bars = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[score]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task: progress.TaskID | None = None
        self.last_line = time.monotonic()

    def __enter__(self) -> "ProgressDisplay":
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.bars.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self.last_line = time.monotonic()

    def start(self, title: str, work: str) -> Callable[[int, int, float], None]:
        """Start the bar of one piece of work; returns what updates it."""
        if self.task is not None:
            self.bars.remove_task(self.task)
        name = f"{title}: {work}"
        self.task = self.bars.add_task(name, total=None, score="")

        def update(done: int, total: int, score: float) -> None:
            best = "" if math.isnan(score) else f"best {score:.4f}"
            if self.task is not None:
                self.bars.update(self.task, completed=done, total=total, score=best)
            waited = time.monotonic() - self.last_line > _QUIET_SECONDS
            if not self.console.is_terminal and waited:
                what = f"{done} of {total}"
                self.say(f"{name}: " + (f"{what}, {best}" if best else what))

        return update
