"""Merging stores that were filled on different machines."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ecg_gnn.study.store.reader import Store
from ecg_gnn.study.store.schema import (
    TEXT_ENDING,
    make_portable,
    open_or_create,
    transaction,
    uri_of,
)
from ecg_gnn.study.store.text import read_records
from ecg_gnn.system.checks import InputError

_TOLERANCE = 1e-12
_DIFFERENT_SCORES = (
    "SELECT count(*) FROM records JOIN other.records AS theirs USING (unit) "
    "WHERE abs(coalesce(records.test, 0) - coalesce(theirs.test, 0)) > ?"
)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge found."""

    records: int
    """Finished units in the store afterwards"""
    added: int
    """How many of them came with this merge"""
    twice: int
    """Units that were finished in several stores; the first result stays"""
    different: int
    """How many of those had another test score"""
    failures: int
    """Failed units in the store afterwards"""


def merge_stores(
    sources: Sequence[str | Path], target: str | Path, *, curves: bool = True
) -> Merged:
    """Copy everything from the sources into the target, which may exist.

    Claims are not copied: what runs elsewhere is missing here. Afterwards the target is
    a single file without side files, so it can be copied and committed.

    Args:
        sources: Stores to read, as databases or as text.
        target: Store to fill.
        curves: Whether to keep the training curves.
    """
    _check(sources, Path(target))
    connection = open_or_create(Path(target))
    before = _count(connection, "records")
    twice = different = 0
    for source in sources:
        with _attached(connection, Path(source)), transaction(connection):
            both, unequal = _merge_attached(connection, curves)
        twice, different = twice + both, different + unequal
    found = Merged(
        records=_count(connection, "records"),
        added=_count(connection, "records") - before,
        twice=twice,
        different=different,
        failures=_count(connection, "failures"),
    )
    make_portable(connection)
    connection.close()
    return found


def _check(sources: Sequence[str | Path], target: Path) -> None:
    for source in sources:
        Store.open(source).close()
        if Path(source).resolve() == target.resolve():
            raise InputError(
                f"'store' must be another file than those merged (got {str(target)!r})"
            )


@contextmanager
def _attached(connection: sqlite3.Connection, source: Path) -> Iterator[None]:
    """Attach a store under the name ``other``; a text as a temporary database."""
    with TemporaryDirectory() as folder:
        if source.suffix == TEXT_ENDING:
            database = Path(folder) / "records.sqlite"
            with (
                closing(read_records(source)) as read,
                closing(sqlite3.connect(database)) as file,
            ):
                read.backup(file)
            source = database
        connection.execute("ATTACH DATABASE ? AS other", (uri_of(source),))
        yield
        connection.execute("DETACH DATABASE other")


def _merge_attached(connection: sqlite3.Connection, curves: bool) -> tuple[int, int]:
    shared = "SELECT count(*) FROM records JOIN other.records USING (unit)"
    twice = connection.execute(shared).fetchone()[0]
    different = connection.execute(_DIFFERENT_SCORES, (_TOLERANCE,)).fetchone()[0]
    for table in ("datasets", "configurations"):
        connection.execute(
            f"INSERT OR IGNORE INTO {table} SELECT * FROM other.{table} ORDER BY rowid"
        )
    connection.execute(
        "INSERT OR IGNORE INTO units SELECT id, configuration, split, seed, 'missing', "
        "NULL, NULL FROM other.units ORDER BY rowid"
    )
    connection.execute("INSERT OR IGNORE INTO members SELECT * FROM other.members")
    columns = [row["name"] for row in connection.execute("PRAGMA table_info(records)")]
    taken = [name if curves or name != "curves" else "NULL" for name in columns]
    connection.execute(
        f"INSERT OR IGNORE INTO records SELECT {', '.join(taken)} FROM other.records"
    )
    connection.execute("INSERT OR IGNORE INTO failures SELECT * FROM other.failures")
    connection.execute("DELETE FROM failures WHERE unit IN (SELECT unit FROM records)")
    connection.execute(
        "UPDATE units SET state = CASE WHEN id IN (SELECT unit FROM records) "
        "THEN 'done' WHEN id IN (SELECT unit FROM failures) THEN 'failed' "
        "ELSE state END WHERE state != 'running' OR id IN (SELECT unit FROM records)"
    )
    return twice, different


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
