"""What verbs print: warnings, progress, tables and JSON."""

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from rich import progress
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ecg_gnn.config import reads_labels
from ecg_gnn.system.cells import Table, value_text
from ecg_gnn.system.checks import printable

_QUIET_SECONDS = 20  # between lines without a terminal
_PIPE_WIDTH = 10_000


def warn(text: str) -> None:
    """Warn the user on stderr, apart from what is printed."""
    print(f"warning: {printable(text)}", file=sys.stderr)


def warn_of_cross_fit(folds: int | None, embeddings: Iterable[str]) -> None:
    """Warn if cross-fitting changes nothing because no embedding reads labels."""
    names = tuple(embeddings)
    if folds and not any(map(reads_labels, names)):
        text = f"no labels are read by {' or '.join(names)}"
        warn(f"--cross-fit changes nothing: {text}")


def print_json(value: Any) -> None:
    """Print JSON, and nothing else, on stdout."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(table: Table, title: str | None = None) -> None:
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


class ProgressDisplay(progress.Progress):
    """A progress bar on a terminal, an occasional line elsewhere."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        super().__init__(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[score]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.last_line = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
        self.last_line = time.monotonic()

    def begin(self, title: str, work: str) -> Callable[[int, int, float], None]:
        """Begin the bar of one piece of work; returns what updates it."""
        for earlier in self.task_ids:
            self.remove_task(earlier)
        name = f"{title}: {work}"
        task = self.add_task(name, total=None, score="")

        def update(done: int, total: int, score: float) -> None:
            best = "" if math.isnan(score) else f"best {score:.4f}"
            if task in self.task_ids:
                self.update(task, completed=done, total=total, score=best)
            waited = time.monotonic() - self.last_line > _QUIET_SECONDS
            if not self.console.is_terminal and waited:
                what = f"{done} of {total}"
                self.say(f"{name}: " + (f"{what}, {best}" if best else what))

        return update
