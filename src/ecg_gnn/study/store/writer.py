"""Writing a store: units are registered, claimed, finished or failed, and merged."""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ecg_gnn.config.setting import field_types
from ecg_gnn.study.records import Result
from ecg_gnn.study.store.reader import Store, owner_of, state_of
from ecg_gnn.study.store.rows import Curves, DatasetInfo, StoredUnit
from ecg_gnn.study.store.schema import TABLES, insert, open_or_create, transaction
from ecg_gnn.system.checks import InputError

# What runs elsewhere is missing here.
_UNCLAIMED = {"state": "missing", "owner": None, "heartbeat": None}
_ALIGN = (
    "DELETE FROM failures WHERE unit IN (SELECT unit FROM records)",
    "UPDATE units SET state = CASE WHEN id IN (SELECT unit FROM records) "
    "THEN 'done' WHEN id IN (SELECT unit FROM failures) THEN 'failed' "
    "ELSE state END WHERE state != 'running' OR id IN (SELECT unit FROM records)",
)


class StoreWriter(Store):
    """A store that this process fills, alone or together with others."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._owner = owner_of(os.getpid())

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a store for writing, or make it."""
        return cls(open_or_create(Path(path)), Path(path))

    def register(
        self, recipe: str, datasets: Iterable[DatasetInfo], units: Sequence[StoredUnit]
    ) -> None:
        """Make units known as missing; what is known already stays as it is."""
        with transaction(self._connection):
            for dataset in datasets:
                self._insert("datasets", asdict(dataset))
            configurations = {u.configuration.id: u.configuration for u in units}
            for configuration in configurations.values():
                self._insert("configurations", asdict(configuration))
            for unit in units:
                row = vars(unit) | {"configuration": unit.configuration.id}
                self._insert("units", row | {"state": "missing"})
                self._insert("members", {"recipe": recipe, "unit": unit.id})

    def claim(self, units: Sequence[str], *, retry_failed: bool = False) -> list[str]:
        """Take those units that are missing, or have failed, in one transaction."""
        free = {"missing", "failed"} if retry_failed else {"missing"}
        with transaction(self._connection):
            taken = [unit for unit in units if self.state(unit) in free]
            query = "UPDATE units SET state = 'running', owner = ? WHERE id = ?"
            self._connection.executemany(query, [(self._owner, u) for u in taken])
        return taken

    def state(self, unit: str) -> str:
        """A unit's state: missing, running, done or failed."""
        query = "SELECT state, owner FROM units WHERE id = ?"
        return state_of(self._connection.execute(query, (unit,)).fetchone())

    def finish(self, unit: str, result: Result) -> None:
        """Keep a result; the first one stays if another process was faster."""
        names = field_types(Result)
        row: dict[str, Any] = {name: getattr(result, name) for name in names}
        series = [row.pop(name) for name in Curves._fields]
        row["curves"] = Curves.of(*series) if series[0] else None
        with transaction(self._connection):
            self._insert("records", row | {"unit": unit, "finished": _now()})
            self._end(unit, "done")

    def fail(
        self, unit: str, kind: str, error: str, provenance: Mapping[str, Any]
    ) -> None:
        """Keep what went wrong, unless another process has finished the unit."""
        row = {"unit": unit, "kind": kind, "error": error, "finished": _now()}
        with transaction(self._connection):
            if self.state(unit) != "done":
                self._end(unit, "failed")
                self._insert("failures", row | {"provenance": provenance})

    def scores(self, units: Sequence[str]) -> dict[str, float]:
        """Validation scores of those of some units that are finished."""
        wanted = "SELECT value FROM json_each(?)"
        query = f"SELECT unit, val FROM records WHERE unit IN ({wanted})"
        return dict(self._connection.execute(query, (json.dumps(units),)).fetchall())

    def mark_pruned(self, unit: str, *, after: int, of: int) -> None:
        """Say in the last record of a trial that a search stopped it there."""
        mark = json.dumps({"search": {"pruned": {"after": after, "of": of}}})
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE records SET provenance = json_patch(provenance, ?) "
                "WHERE unit = ?",
                (mark, unit),
            )

    def release(self) -> None:
        """Give back every unit that this process has claimed and not ended."""
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE units SET owner = NULL, state = CASE "
                "WHEN id IN (SELECT unit FROM failures) THEN 'failed' "
                "ELSE 'missing' END WHERE state = 'running' AND owner = ?",
                (self._owner,),
            )

    def _end(self, unit: str, state: str) -> None:
        """Give up the claim; an earlier failure is no longer the last word."""
        self._connection.execute("DELETE FROM failures WHERE unit = ?", (unit,))
        self._connection.execute(
            "UPDATE units SET state = ?, owner = NULL WHERE id = ?", (state, unit)
        )

    def _insert(self, table: str, row: Mapping[str, Any]) -> None:
        """Insert a row unless one with the same key is there."""
        insert(self._connection, "INSERT OR IGNORE", table, row)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Merged:
    """What a merge did."""

    records: int  # finished units in the store afterwards
    added: int
    failures: int


def merge_stores(
    sources: Sequence[str | Path], target: str | Path, *, curves: bool = True
) -> Merged:
    """Copy everything from the sources into the target, which may exist.

    Afterwards the target is a single file without side files, unless others have it
    open, so it can be copied and committed.
    """
    target = Path(target)
    with ExitStack() as opened:  # all of them, before the first one is merged
        stores = [opened.enter_context(Store.open(source)) for source in sources]
        if target.resolve() in [store.path.resolve() for store in stores]:
            raise InputError(
                f"'store' must be another file than those merged (got {str(target)!r})"
            )
        connection = opened.enter_context(closing(open_or_create(target)))
        before = _count(connection, "records")
        for store in stores:
            _copy(store._connection, connection, curves)
        after, failures = _count(connection, "records"), _count(connection, "failures")
        connection.execute("PRAGMA busy_timeout = 1000")
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA journal_mode = DELETE")
            connection.execute("VACUUM")
    return Merged(after, after - before, failures)


def _copy(source: sqlite3.Connection, target: sqlite3.Connection, curves: bool) -> None:
    """Add all rows that are not there; claims are not copied."""
    with transaction(target):
        for table in TABLES:
            for row in map(dict, source.execute(f"SELECT * FROM {table}")):
                row |= _UNCLAIMED if table == "units" else {}
                row |= {"curves": None} if table == "records" and not curves else {}
                insert(target, "INSERT OR IGNORE", table, row)
        for query in _ALIGN:
            target.execute(query)


def _count(connection: sqlite3.Connection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
