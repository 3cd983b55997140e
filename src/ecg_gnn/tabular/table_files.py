"""Columns from CSV and Parquet files, and back; which reads what is in file_types."""

import csv
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.reading import BYTES_PER_CELL, check_cells, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Column

Columns = dict[str, Column]

_MIN_CELL_LENGTH = 131_072  # the csv module's own limit


def read_csv(path: Path, delimiter: str, most: int) -> Columns:
    """Read text whose cells are separated by one character."""
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise InputError(f"'delimiter' must be one character (got {delimiter!r})")
    try:
        # A text may be one long cell.
        csv.field_size_limit(max(_MIN_CELL_LENGTH, min(most, sys.maxsize)))
        # newline="": a quoted cell may have lines of its own.
        with path.open(encoding="utf-8-sig", newline="") as file:
            # strict: half a quoted cell at the end is refused.
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            return _columns(path, (row for row in rows if row), most)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: must be whole CSV text in UTF-8 (got {error})"
        ) from error


def write_csv(path: Path, delimiter: str, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns; the caller makes it atomic."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _columns(path: Path, rows: Iterator[list[str]], most: int) -> Columns:
    header = [name.strip() for name in next(rows, [])]
    header = [name or f"column_{place}" for place, name in enumerate(header, 1)]
    _check_header(path, header)
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


def _check_header(path: Path, header: Sequence[str]) -> None:
    if not header:
        raise InputError(f"{path}: must have a header and rows (the file is empty)")
    twice = [name for name, count in Counter(header).items() if count > 1]
    if twice:
        got = f"{twice[0]!r} twice"
        raise InputError(f"{path}: every column must have a name of its own ({got})")


def read_parquet(path: Path, delimiter: str, most: int) -> Columns:
    """Read columns of floating-point numbers as numbers, all others as texts."""
    from pyarrow import parquet

    with refusing(str(path), "a whole Parquet file"):
        with parquet.ParquetFile(path) as file:
            _check_parquet_size(str(path), file.metadata, most)
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
        # As dictionaries: a long text that a small file repeats is in memory once.
        with parquet.ParquetFile(
            path, read_dictionary=texts, page_checksum_verification=True
        ) as file:
            table = file.read()
        table.validate(full=True)
        columns = [
            (name, _parquet_column(str(path), name, column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
    _check_header(path, [name for name, _ in columns])
    return dict(columns)


def write_parquet(
    path: Path, delimiter: str, columns: Mapping[str, Iterable[Any]]
) -> None:
    """Write columns; the caller makes it atomic."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: list(values) for name, values in columns.items()})
    parquet.write_table(table, path, write_page_checksum=True)


def _check_parquet_size(source: str, meta: Any, most: int) -> None:
    """Refuse a file by what its footer claims, before memory is taken for it."""
    check_cells(source, [meta.num_rows, meta.num_columns], most)
    groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    check_cells(source, [unpacked // BYTES_PER_CELL], most)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _parquet_column(source: str, name: str, column: Any) -> Column:
    import pyarrow as pa

    is_dictionary = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_dictionary else column.type
    refused = ("nested", "binary", "large_binary", "binary_view", "fixed_size_binary")
    if any(getattr(pa.types, f"is_{each}")(kind) for each in refused):
        raise InputError(
            f"{source}: {name!r} must be numbers or texts (got the type {kind})"
        )
    if is_dictionary:
        return [text for chunk in column.chunks for text in _shared_texts(chunk)]
    if pa.types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    return [None if value is None else str(value) for value in column.to_pylist()]


def _shared_texts(chunk: Any) -> list[str | None]:
    """A dictionary's texts, each of them once in memory."""
    texts = [None if v is None else str(v) for v in chunk.dictionary.to_pylist()]
    return [None if place is None else texts[place] for place in chunk.indices.tolist()]
