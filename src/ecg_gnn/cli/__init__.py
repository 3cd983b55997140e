"""The command line: parse, call one function, print."""

import io
import os
import re
import sqlite3
import sys
import warnings
from itertools import pairwise
from typing import Any

import typer

from ecg_gnn.system import interrupts
from ecg_gnn.system.checks import InputError, printable

# Newer typer carries its own click, older typer depends on it: the base class of
# every usage error is found through the one name that both export.
_UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)
_LONGEST = 2_000
_RESUMING = {"run", "fit", "advise", "study"}


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
        from ecg_gnn.cli.verbs import app  # which imports all of them

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
    words = [part for word in sys.argv[1:] for part in word.split("=", 1)]
    given = [value for name, value in pairwise(words) if option and name == option[1]]
    # If given twice, the last one counts.
    return f"{message} (got {given[-1]!r:.60})" if given else message


def _show_warning(message: Warning | str, *_: object) -> None:
    """One line, without the place in the source, which means nothing to a user."""
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _fail(message: str, status: int) -> int:
    if line := printable(" ".join(message.split())):
        shown = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
        print(f"error: {shown}", file=sys.stderr)
    return status
