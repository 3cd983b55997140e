"""Writing a store: units are registered, claimed, and finished or failed."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ecg_gnn.study.store.owner import BEAT_SECONDS, Owner
from ecg_gnn.study.store.reader import Store
from ecg_gnn.study.store.rows import Configuration, DatasetInfo, Result
from ecg_gnn.study.store.schema import insert_row, open_or_create, transaction
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True, kw_only=True)
class NewUnit:
    """A unit to be known to the store."""

    id: str
    configuration: str
    split: int
    seed: int


class StoreWriter(Store):
    """A store that this process fills, alone or beside others."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection, path)
        self._owner = Owner.this_process().to_text()

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open a store for writing, or make it."""
        return cls(open_or_create(Path(path)), Path(path))

    def register(
        self,
        recipe: str,
        datasets: Iterable[DatasetInfo],
        configurations: Iterable[Configuration],
        units: Sequence[NewUnit],
    ) -> None:
        """Make units known as missing; what is known already stays as it is."""
        with transaction(self._connection):
            for dataset in datasets:
                self._insert("datasets", asdict(dataset), json_columns=["statistics"])
            for configuration in configurations:
                self._insert(
                    "configurations", asdict(configuration), json_columns=["config"]
                )
            for unit in units:
                self._insert("units", asdict(unit) | {"state": "missing"})
                self._insert("members", {"recipe": recipe, "unit": unit.id})

    def claim(self, units: Sequence[str], *, retry_failed: bool = False) -> list[str]:
        """Take those units that nobody has done or is running; all at once.

        Units of processes that died are free again; with ``retry_failed`` those that
        failed are, too.
        """
        free = {"missing", "failed"} if retry_failed else {"missing"}
        with transaction(self._connection):
            taken = [unit for unit in units if self._state(unit) in free]
            for unit in taken:
                self._connection.execute(
                    "UPDATE units SET state = 'running', owner = ?, heartbeat = ? "
                    "WHERE id = ?",
                    (self._owner, time.time(), unit),
                )
        return taken

    def states(self, units: Sequence[str]) -> dict[str, str]:
        """Every unit's state: missing, running, done or failed."""
        return {unit: self._state(unit) for unit in units}

    def _state(self, unit: str) -> str:
        query = "SELECT state, owner, heartbeat FROM units WHERE id = ?"
        row = self._connection.execute(query, (unit,)).fetchone()
        gone = row["state"] == "running" and not Owner.from_text(row["owner"]).lives(
            row["heartbeat"]
        )
        return "missing" if gone else str(row["state"])

    def finish(self, unit: str, result: Result) -> None:
        """Keep a result; the first one stays if somebody else was faster."""
        curves = None if result.curves is None else result.curves.to_bytes()
        row = {
            "unit": unit,
            "val": result.val,
            "test": result.test,
            "best_step": result.best_step,
            "seconds": result.seconds,
            "peak_memory_mb": result.peak_memory_mb,
            "evolved_statistics": result.evolved_statistics,
            "curves": curves,
            "provenance": dict(result.provenance),
            "finished": _now(),
        }
        with transaction(self._connection):
            self._insert("records", row, ["evolved_statistics", "provenance"])
            self._connection.execute("DELETE FROM failures WHERE unit = ?", (unit,))
            self._end(unit, "done")

    def fail(
        self, unit: str, kind: str, error: str, provenance: Mapping[str, Any]
    ) -> None:
        """Keep what went wrong, unless somebody else has finished the unit."""
        row = {"unit": unit, "kind": kind, "error": error, "finished": _now()}
        with transaction(self._connection):
            if self._state(unit) != "done":
                self._connection.execute("DELETE FROM failures WHERE unit = ?", (unit,))
                row |= {"provenance": json.dumps(dict(provenance))}
                self._insert("failures", row)
                self._end(unit, "failed")

    def release(self) -> None:
        """Give back every unit that this process has claimed and not ended."""
        with transaction(self._connection):
            self._connection.execute(
                "UPDATE units SET owner = NULL, heartbeat = NULL, state = CASE "
                "WHEN id IN (SELECT unit FROM failures) THEN 'failed' "
                "ELSE 'missing' END WHERE state = 'running' AND owner = ?",
                (self._owner,),
            )

    @contextmanager
    def heartbeat(self) -> Iterator[None]:
        """Tell other machines, now and then, that this process lives."""
        over = threading.Event()
        beating = threading.Thread(target=self._beat, args=(over,), daemon=True)
        beating.start()
        try:
            yield
        finally:
            over.set()
            beating.join()

    def _beat(self, over: threading.Event) -> None:
        while not over.wait(BEAT_SECONDS):
            # A beat that is missed for once is no reason to stop a study.
            with suppress(sqlite3.Error, InputError):
                connection = open_or_create(self.path)  # one per thread
                connection.execute(
                    "UPDATE units SET heartbeat = ? "
                    "WHERE state = 'running' AND owner = ?",
                    (time.time(), self._owner),
                )
                connection.close()

    def _end(self, unit: str, state: str) -> None:
        self._connection.execute(
            "UPDATE units SET state = ?, owner = NULL, heartbeat = NULL WHERE id = ?",
            (state, unit),
        )

    def _insert(
        self, table: str, row: Mapping[str, Any], json_columns: Sequence[str] = ()
    ) -> None:
        """Insert a row unless one with the same key is there."""
        insert_row(self._connection, table, row, json_columns, unless_there=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
