"""Parquet files as columns, by way of pyarrow."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.reading import check_cells, refusing
from ecg_gnn.reading import BYTES_PER_CELL
from ecg_gnn.system.checks import InputError, MissingExtraError

Values = list[str | None] | NDArray[np.float64]


def read_parquet(path: Path, most: int | None) -> list[tuple[str, Values]]:
    """Every column with its name: numbers if it has a point, else texts."""
    _pyarrow()
    import pyarrow as pa
    from pyarrow import parquet

    with refusing(str(path), "a whole Parquet file"):
        with parquet.ParquetFile(path) as file:
            _check_sizes(str(path), file.metadata, most)
            texts = [f.name for f in file.schema_arrow if _is_text(f.type)]
        # As dictionaries: a long text that a small file repeats is in memory once.
        with parquet.ParquetFile(
            path, read_dictionary=texts, page_checksum_verification=True
        ) as file:
            table = file.read()
        table.validate(full=True)
        assert isinstance(table, pa.Table)
        return [
            (name, _values(str(path), name, column))
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]


def write_parquet(path: Path, columns: Mapping[str, Iterable[Any]]) -> None:
    """Write columns; the caller makes it atomic."""
    _pyarrow()
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: list(values) for name, values in columns.items()})
    parquet.write_table(table, path, write_page_checksum=True)


def _check_sizes(source: str, meta: Any, most: int | None) -> None:
    """Refuse a file by what its footer claims, before memory is taken for it."""
    check_cells(source, [meta.num_rows, meta.num_columns], most)
    groups = [meta.row_group(place) for place in range(meta.num_row_groups)]
    unpacked = sum(group.total_byte_size for group in groups)
    check_cells(source, [unpacked // BYTES_PER_CELL], most)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _values(source: str, name: str, column: Any) -> Values:
    import pyarrow as pa

    is_dictionary = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if is_dictionary else column.type
    refused = ("nested", "binary", "large_binary", "binary_view", "fixed_size_binary")
    if any(getattr(pa.types, f"is_{each}")(kind) for each in refused):
        raise InputError(
            f"{source}: {name!r} must be numbers or texts (got the type {kind})"
        )
    if is_dictionary:
        return [text for chunk in column.chunks for text in _shared(chunk)]
    if pa.types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    return [None if value is None else str(value) for value in column.to_pylist()]


def _shared(chunk: Any) -> list[str | None]:
    """A dictionary's texts, each of them once in memory."""
    texts = [None if v is None else str(v) for v in chunk.dictionary.to_pylist()]
    return [None if place is None else texts[place] for place in chunk.indices.tolist()]


def _pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise MissingExtraError("pyarrow", "parquet", "a Parquet file") from None
