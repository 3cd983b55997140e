"""What every reader of untrusted files shares.

A limit on size, checked before memory is taken; failures told in one line; files only;
and JSON and YAML that hold plain values only.
"""

import json
import math
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from ecg_gnn.system.checks import InputError

MAX_CELLS = 500_000_000
"""Numbers in one table or array, unless the user allows more."""
BYTES_PER_CELL = 8
_LIMIT_VARIABLE = "ECG_MAX_CELLS"
_MAX_REASON_LENGTH = 200
_MAX_TEXT_BYTES = 1 << 28  # of settings and descriptions; tables have max_cells
_MAX_YAML_LENGTH = 1_000_000  # more takes seconds


def max_cells(given: int | None = None) -> int:
    """What the caller says, else the variable ``ECG_MAX_CELLS``, else 500 million."""
    if given is not None:
        return given
    text = os.environ.get(_LIMIT_VARIABLE) or MAX_CELLS
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{_LIMIT_VARIABLE} must be a whole number (got {text!r})"
        ) from None


def check_cells(
    source: str, shape: Sequence[int], most: int | None = None, *, itemsize: int = 0
) -> None:
    """Refuse a table or an array that is larger than the user wants to hold.

    ``most`` is by default :func:`max_cells`. A long text counts as several cells:
    ``itemsize`` is the bytes of one.
    """
    most = max_cells(most)
    count = math.prod(shape)
    if max(count, count * itemsize // BYTES_PER_CELL) > most:
        sizes = " × ".join(map(str, shape))
        each = f", {itemsize} bytes each" if itemsize > BYTES_PER_CELL else ""
        raise InputError(
            f"{source}: must have at most {most} cells, or --max-cells "
            f"({_LIMIT_VARIABLE}) must be raised (got {sizes}{each})"
        )


def check_file(path: Path) -> None:
    """Refuse what is no file: a pipe may never answer, a device may never end."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    else:
        if stat.S_ISREG(mode):
            return
        folder = stat.S_ISDIR(mode)
        reason = "Is a directory" if folder else "a pipe or a device, not a file"
    raise InputError(f"{path}: cannot be read ({reason})")


def read_text(path: Path) -> str:
    """A whole text file in UTF-8, within a limit."""
    check_file(path)
    if (size := path.stat().st_size) > _MAX_TEXT_BYTES:
        most = f"at most {_MAX_TEXT_BYTES} bytes"
        raise InputError(f"{path}: must have {most} (got {size})")
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from error


@contextmanager
def refusing(source: str, wanted: str) -> Iterator[None]:
    """Turn every failure into one line that says what the file must be.

    Damaged bytes raise dozens of types across zlib, struct, NumPy, torch and the rest,
    and which of them differs between versions; all mean the same to the user.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"{source}: must be {wanted} (got {reason})") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message, shortened if it is long."""
    line = (str(error).splitlines() or [""])[0]
    cut = len(line) > _MAX_REASON_LENGTH
    return f"{line[:_MAX_REASON_LENGTH]}…" if cut else line


def read_json(source: str, text: str) -> Any:
    """The value of a JSON text; NaN, infinity and half characters are refused."""
    with refusing(source, "JSON"):
        value = json.loads(text)
        # A value that cannot be written again would fail later, far from here.
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")
        return value


def read_yaml(source: str, text: str) -> Any:
    """The value of a YAML text (JSON is YAML): plain values, no Python objects."""
    if len(text) > _MAX_YAML_LENGTH:
        most = f"at most {_MAX_YAML_LENGTH} characters"
        raise InputError(f"{source} must have {most} (got {len(text)})")
    try:
        return _PlainLoader(text).get_single_data()
    except Exception as error:  # bad dates and numbers raise Python's own errors
        raise InputError(f"{source} is not YAML or JSON: {error}") from None


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuse aliases: a page of them may stand for more values than atoms."""
        if self.check_event(yaml.AliasEvent):
            raise InputError("it must have no aliases (got one)")
        return super().compose_node(parent, index)
