"""Tables from CSV and Parquet files, and back."""

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.reading import BYTES_PER_CELL, check_cells, check_file, max_cells, refusing
from ecg_gnn.system.checks import InputError, MissingExtraError, check_choice
from ecg_gnn.tabular.columns import Column, Table

Columns = dict[str, Column]

_PARQUET = ".parquet"
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", _PARQUET)
WRITABLE_SUFFIXES = (".csv", ".tsv", _PARQUET)
_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')


def read_table(
    path: str | Path, *, delimiter: str | None = None, most: int | None = None
) -> Table:
    """Read a table by its file's ending, one of ``TABLE_SUFFIXES``.

    The ``delimiter`` of a text file is by default the one that its header has most
    often; for ``most`` see :func:`ecg_gnn.reading.check_cells`.
    """
    path = Path(path)
    check_choice(f"ending of {path}", suffix := path.suffix.lower(), TABLE_SUFFIXES)
    check_file(path)
    try:
        if suffix == _PARQUET:
            columns = _read_parquet(path, max_cells(most))
        else:
            columns = _read_csv(path, delimiter, max_cells(most))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{path}: cannot be read ({reason})") from error
    table = Table(str(path), columns)
    if not table.num_rows:
        raise InputError(f"{path}: must have a header and at least one row (got none)")
    return table


def write_table(path: Path, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns by a file's ending; the caller makes it atomic."""
    check_choice(f"ending of {path}", suffix := path.suffix.lower(), WRITABLE_SUFFIXES)
    if suffix == _PARQUET:
        pa, parquet = _pyarrow()
        table = pa.table({name: list(values) for name, values in columns.items()})
        parquet.write_table(table, path, write_page_checksum=True)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=_guess_delimiter(path, ""))
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


# --- CSV ------------------------------------------------------------------------------


def _read_csv(path: Path, delimiter: str | None, most: int) -> Columns:
    """Read text whose cells are separated by one character."""
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InputError(f"'delimiter' must be one character (got {delimiter!r})")
    # A file without an end of line would be one cell.
    check_cells(str(path), [path.stat().st_size // BYTES_PER_CELL], most)
    csv.field_size_limit(sys.maxsize)
    try:
        # newline="": a quoted cell may have lines of its own.
        with path.open(encoding="utf-8-sig", newline="") as file:
            # strict: half a quoted cell at the end is refused.
            header = next((line for line in file if line.strip("\r\n")), "")
            mark = delimiter or _guess_delimiter(path, header)
            rows = csv.reader(chain([header], file), delimiter=mark, strict=True)
            return _columns(path, (row for row in rows if row), most)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: must be whole CSV text in UTF-8, as spreadsheets save it under "
            f"the name 'CSV UTF-8' (got {error})"
        ) from error
    except csv.Error as error:
        raise InputError(f"{path}: must be whole CSV text (got {error})") from error


def _guess_delimiter(path: Path, header: str) -> str:
    """What separates the names of a header, the file type's own if nothing does."""
    bare = _QUOTED.sub("", header)
    own = "\t" if path.suffix.lower() == ".tsv" else ","
    return str(max([own, *_DELIMITERS], key=bare.count))


def _columns(path: Path, rows: Iterator[list[str]], most: int) -> Columns:
    header = [name.strip() for name in next(rows, [])]
    header = [name or f"column_{place}" for place, name in enumerate(header, 1)]
    _check_header(path, header)
    cells: list[list[str | None]] = [[] for _ in header]
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise InputError(
                f"{path}: every row must have {len(header)} cells, like the header "
                f"(got {len(row)} in row {number})"
            )
        check_cells(str(path), [number, len(header)], most)
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
    return dict(zip(header, cells, strict=True))


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header:
        raise InputError(f"{path}: must have a header and rows (the file is empty)")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        got = f"{twice[0]!r} twice"
        raise InputError(f"{path}: column names must be unique (got {got})")


# --- Parquet --------------------------------------------------------------------------


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "a Parquet file") from None
    return pyarrow, parquet


def _read_parquet(path: Path, most: int) -> Columns:
    """Read floating-point numbers as numbers, lists as JSON, all else as texts."""
    pa, parquet = _pyarrow()
    with refusing(str(path), "a whole Parquet file"):
        with parquet.ParquetFile(path) as file:
            # What its footer claims is checked before memory is taken for it.
            meta, schema = file.metadata, file.schema_arrow
            leaves = [file.schema.column(k) for k in range(meta.num_columns)]
        groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
        unpacked = sum(group.total_byte_size for group in groups) // BYTES_PER_CELL
        places = range(meta.num_columns)
        in_lists = sum(group.column(k).num_values for group in groups for k in places)
        for shape in ([meta.num_rows, meta.num_columns], [unpacked], [in_lists]):
            check_cells(str(path), shape, most)
        for field in schema:
            if not _is_plain(pa.types, field.type):
                raise InputError(
                    f"{path}: {field.name!r} must be numbers, dates, texts or lists of "
                    f"them (got the type {field.type})"
                )
        # As dictionaries: a long text that a small file repeats is in memory once.
        texts = [leaf.path for leaf in leaves if leaf.logical_type.type == "STRING"]
        with parquet.ParquetFile(
            path, read_dictionary=texts, page_checksum_verification=True
        ) as file:
            table = file.read()
        table.validate(full=True)
        _check_header(path, names := table.column_names)
        cells = [_parquet_column(path, pa.types, each, most) for each in table.columns]
        return dict(zip(names, cells, strict=True))


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind))


def _is_plain(types: Any, kind: Any) -> bool:
    if _is_list(types, kind):
        kind = kind.value_type
    if types.is_dictionary(kind):
        kind = kind.value_type
    unread = ("nested", "binary", "large_binary", "binary_view", "fixed_size_binary")
    return not any(getattr(types, f"is_{each}")(kind) for each in unread)


def _parquet_column(path: Path, types: Any, column: Any, most: int) -> Column:
    if _is_list(types, column.type):
        if types.is_dictionary(column.type.value_type):
            # A short file may repeat a long text, here for the first time in full.
            chunks = [_shared_texts(chunk.flatten()) for chunk in column.chunks]
            length = sum(len(text or "") for texts in chunks for text in texts)
            check_cells(str(path), [length // BYTES_PER_CELL], most)
        lists = column.to_pylist()
        return [None if v is None else json.dumps(v, default=str) for v in lists]
    if types.is_dictionary(column.type):
        return [text for chunk in column.chunks for text in _shared_texts(chunk)]
    if types.is_floating(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    return [None if value is None else str(value) for value in column.to_pylist()]


def _shared_texts(chunk: Any) -> list[str | None]:
    """A dictionary's texts, each of them once in memory."""
    texts = [None if v is None else str(v) for v in chunk.dictionary.to_pylist()]
    return [None if place is None else texts[place] for place in chunk.indices.tolist()]
