"""The command line: parse, call one function, print."""

import sys
from typing import Any, NoReturn

import typer

from ecg_gnn.checks import InputError

# Newer typer carries its own click, older typer depends on it: the base class of
# every usage error is found through the one name that both export.
_UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def main() -> None:
    """Run ``ecg-gnn``; a user's mistake is one line on stderr and exit status 2."""
    from ecg_gnn.cli.app import app

    try:
        status = app(standalone_mode=False)
    except InputError as error:
        _fail(str(error), 2)
    except _UsageError as error:
        _fail(error.format_message(), 2)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted: the same command goes on where it stopped", 130)
    raise SystemExit(status if isinstance(status, int) else 0)


def _fail(message: str, status: int) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    raise SystemExit(status)
