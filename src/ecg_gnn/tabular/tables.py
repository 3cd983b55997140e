"""Tables of nodes and edges: named columns, read from CSV or Parquet."""

import csv
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.reading import check_cells, max_cells
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.tabular.parquet import read_parquet, write_parquet

Column = list[str | None] | NDArray[np.float64]
"""Texts as the file has them, or numbers where a file has numbers (NaN: missing)."""

# As files write "no value"; a name of a node may be NA (Namibia) but not empty.
_MISSING = frozenset(["", "na", "n/a", "nan", "null", "none"])
_NO_ID = frozenset(["", "nan"])
_LONGEST = 4  # of these words: longer texts need not be looked at
_CELL = 131_072


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, and where they came from."""

    source: str
    columns: dict[str, Column]

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            if not isinstance(column, np.ndarray):
                _check_texts(self.source, name, column)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), []))

    def column(self, name: str, purpose: str) -> Column:
        """A column that must be there."""
        if name in self.columns:
            return self.columns[name]
        names = list(self.columns)
        hint = ""
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            hint = "; is another delimiter used?"
        raise InputError(
            f"{self.source}: must have the column {name!r} of the {purpose} (got "
            f"{_some(names)}{hint})"
        )

    def texts(self, name: str, purpose: str) -> list[str | None]:
        """A column as texts, None where there is no value."""
        found = [as_text(value) for value in self.column(name, purpose)]
        return [None if is_missing(text) else text for text in found]

    def names(self, name: str, purpose: str) -> list[str]:
        """A column of names of nodes: none may be missing."""
        found = [as_text(value) for value in self.column(name, purpose)]
        for row, text in enumerate(found):
            if text is None or _is_one_of(_NO_ID, text):
                raise InputError(
                    f"{self.source}: {name!r} must have a value in every row (got none "
                    f"in row {row + 1})"
                )
        return [text for text in found if text is not None]


def as_text(value: str | float | None) -> str | None:
    """A cell as a text without spaces around it; whole numbers without a point."""
    if value is None or isinstance(value, str):
        return value and value.strip()
    if np.isnan(value):
        return None
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def is_missing(text: str | None) -> bool:
    """Whether a text stands for no value."""
    return text is None or _is_one_of(_MISSING, text.strip())


def _is_one_of(words: frozenset[str], text: str) -> bool:
    return len(text) <= _LONGEST and text.lower() in words


def read_table(
    path: str | Path, *, delimiter: str | None = None, most: int | None = None
) -> Table:
    """Read a table by its file's ending: .csv, .tsv, .txt or .parquet.

    Args:
        path: The file.
        delimiter: Of a text file; by default a tab for .tsv and else a comma.
        most: See :func:`ecg_gnn.reading.check_cells`.
    """
    path = Path(path)
    check_choice("ending of " + str(path), path.suffix.lower(), _READERS)
    try:
        path.open("rb").close()
        columns = _READERS[path.suffix.lower()](path, delimiter, max_cells(most))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason})") from error
    table = Table(str(path), columns)
    if not table.num_rows:
        raise InputError(f"{path}: must have a header and at least one row (got none)")
    return table


def _read_csv(path: Path, delimiter: str | None, most: int) -> dict[str, Column]:
    delimiter = delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"'delimiter' must be one character (got {delimiter!r})")
    try:
        # A text may be one long cell; without this it must not pass _CELL.
        csv.field_size_limit(max(_CELL, min(most, sys.maxsize)))
        # newline="": a quoted cell may have lines of its own.
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _columns(path, _rows(file, delimiter), most)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: must be whole CSV text in UTF-8 (got {error})"
        ) from error


def _rows(file: io.TextIOBase, delimiter: str) -> Iterator[list[str]]:
    """Rows that are not empty; half a quoted cell at the end is refused."""
    return (row for row in csv.reader(file, delimiter=delimiter, strict=True) if row)


def _columns(path: Path, rows: Iterator[list[str]], most: int) -> dict[str, Column]:
    header = [name.strip() for name in next(rows, [])]
    header = [name or f"column_{place}" for place, name in enumerate(header, 1)]
    _check_header(str(path), header)
    cells: list[list[str | None]] = [[] for _ in header]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise InputError(
                f"{path}: every row must have {len(header)} cells, as the header (got "
                f"{len(row)} in row {number})"
            )
        check_cells(str(path), [number, len(header)], most)
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
    return dict(zip(header, cells, strict=True))


def _check_header(source: str, header: Sequence[str]) -> None:
    if not header:
        raise InputError(f"{source}: must have a header and rows (the file is empty)")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        got = f"{twice[0]!r} twice"
        raise InputError(f"{source}: every column must have a name of its own ({got})")


def _check_texts(source: str, name: str, texts: Sequence[str | None]) -> None:
    """Refuse texts that could not be kept: arrays end at NUL, UTF-8 is whole."""
    # Each once: a column may repeat a long text that is in memory once.
    if _can_be_kept("".join({name, *(text or "" for text in texts)})):
        return
    rows = [row for row, text in enumerate(texts, 1) if not _can_be_kept(text or "")]
    where = f"in row {rows[0]}" if rows else "in its name"
    raise InputError(
        f"{source}: {name!r} must be texts without NUL and half characters (got such "
        f"{where})"
    )


def _can_be_kept(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _read_parquet(path: Path, _: str | None, most: int) -> dict[str, Column]:
    found = read_parquet(path, most)
    _check_header(str(path), [name for name, _ in found])
    return dict(found)


def write_table(path: Path, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns to a .csv, .tsv or .parquet file; the caller makes it atomic."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, columns)
        return
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _some(names: Sequence[str], most: int = 8) -> str:
    shown = str(list(names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


_READERS: dict[str, Callable[[Path, str | None, int], dict[str, Column]]] = {
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".txt": _read_csv,
    ".parquet": _read_parquet,
}
