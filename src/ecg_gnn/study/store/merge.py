"""Merging stores that were filled on different machines."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ecg_gnn.study.store.reader import open_for_reading
from ecg_gnn.study.store.schema import open_or_create, transaction
from ecg_gnn.system.checks import InputError

_TOLERANCE = 1e-12
_COPIED = {
    "datasets": "SELECT * FROM datasets ORDER BY rowid",
    "configurations": "SELECT * FROM configurations ORDER BY rowid",
    # Claims are not copied: what runs elsewhere is missing here.
    "units": "SELECT id, configuration, split, seed, 'missing', NULL, NULL FROM units "
    "ORDER BY rowid",
    "members": "SELECT * FROM members",
    "records": "SELECT unit, val, test, best_step, seconds, peak_memory_mb, "
    "evolved_statistics, curves, provenance, finished FROM records",
    "failures": "SELECT * FROM failures",
}
_ALIGN_STATES = (
    "UPDATE units SET state = CASE WHEN id IN (SELECT unit FROM records) "
    "THEN 'done' WHEN id IN (SELECT unit FROM failures) THEN 'failed' "
    "ELSE state END WHERE state != 'running' OR id IN (SELECT unit FROM records)"
)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """What a merge did."""

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

    Afterwards the target is a single file without side files, unless others have it
    open, so it can be copied and committed.

    Args:
        sources: Stores to read, as databases or as text.
        target: Store to fill.
        curves: Whether to keep the training curves.
    """
    target = Path(target)
    for source in map(Path, sources):
        open_for_reading(source).close()  # none is refused after others were merged
        if source.resolve() == target.resolve():
            raise InputError(
                f"'store' must be another file than those merged (got {str(target)!r})"
            )
    twice = different = 0
    with closing(open_or_create(target)) as connection:
        before = len(_tests(connection))
        for source in map(Path, sources):
            with closing(open_for_reading(source)) as other, transaction(connection):
                ours, theirs = _tests(connection), _tests(other)
                both = ours.keys() & theirs.keys()
                gaps = [abs((ours[u] or 0) - (theirs[u] or 0)) for u in both]
                twice += len(both)
                different += sum(gap > _TOLERANCE for gap in gaps)
                _copy(other, connection, curves)
        after = len(_tests(connection))
        failures = connection.execute("SELECT count(*) FROM failures").fetchone()[0]
        connection.execute("PRAGMA busy_timeout = 1000")
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
    return Merged(
        records=after,
        added=after - before,
        twice=twice,
        different=different,
        failures=failures,
    )


def _tests(connection: sqlite3.Connection) -> dict[str, float | None]:
    """The test score of every finished unit."""
    return dict(map(tuple, connection.execute("SELECT unit, test FROM records")))


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, curves: bool) -> None:
    for table, query in _COPIED.items():
        rows = source.execute(query if curves else query.replace("curves", "NULL"))
        places = ", ".join("?" * len(rows.description))
        insert = f"INSERT OR IGNORE INTO {table} VALUES ({places})"
        target.executemany(insert, map(tuple, rows))
    target.execute("DELETE FROM failures WHERE unit IN (SELECT unit FROM records)")
    target.execute(_ALIGN_STATES)
