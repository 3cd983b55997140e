"""The tables of a store, and how its file is opened."""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

from ecg_gnn.study.store.rows import Curves
from ecg_gnn.system.checks import InputError

SCHEMA_VERSION = 1
TEXT_ENDING = ".jsonl"  # of stores as text, which are read and never filled
TABLES = ("datasets", "configurations", "units", "records", "failures", "members")
_JSON_COLUMNS = {"statistics", "config", "evolved_statistics", "provenance"}
_APPLICATION_ID = 0x45434753  # "ECGS": tells our files from other databases
_SCHEMA = files("ecg_gnn.study.store").joinpath("schema.sql")
_SHAPE = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
_ROWS_ARE_MISSING = (
    "SELECT EXISTS (SELECT 1 FROM pragma_foreign_key_check) OR EXISTS "
    "(SELECT 1 FROM units LEFT JOIN records ON unit = id "
    "WHERE (state = 'done') != (unit IS NOT NULL))"
)


def open_existing(path: Path) -> sqlite3.Connection:
    """A connection that only reads; the file must be there."""
    if not path.is_file():
        raise InputError(f"'store' {str(path)!r} does not exist")
    # For writing where possible, so that the last reader to leave removes the side
    # files. In a read-only place no other process writes either.
    writable = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    with _opened(path, "rw" if writable else "ro&immutable=1") as connection:
        _check_whole(connection, path)
        connection.execute("PRAGMA query_only = ON")
    return connection


def open_or_create(path: Path) -> sqlite3.Connection:
    """A connection that also writes; the file is made where there is none."""
    if path.suffix == TEXT_ENDING:
        raise InputError(
            f"'store' must be a database to be filled (got the text {str(path)!r}: "
            "study merge makes a database of it)"
        )
    with _opened(path, "rwc") as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        # Every commit reaches the disk: what a killed machine lost would run again.
        connection.execute("PRAGMA synchronous = FULL")
        with transaction(connection):
            if not connection.execute(_SHAPE).fetchone():
                _create(connection)
            _check_version(connection, path)
    return connection


def open_in_memory() -> sqlite3.Connection:
    """An empty store that is gone when it is closed."""
    connection = _connected(":memory:")
    _create(connection)
    return connection


def _connected(database: str) -> sqlite3.Connection:
    connection = sqlite3.connect(database, uri=True, timeout=60, isolation_level=None)
    connection.row_factory = sqlite3.Row
    return connection


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A connection that is closed if the block fails; errors name the file."""
    with ExitStack() as opened:
        try:
            if mode == "rwc":
                path.parent.mkdir(parents=True, exist_ok=True)
            connection = _connected(f"{path.absolute().as_uri()}?mode={mode}")
            opened.callback(connection.close)
            yield connection
        except (sqlite3.Error, OSError) as error:
            said = f"'store' {str(path)!r} cannot be opened ({error})"
            raise InputError(said) from None
        opened.pop_all()  # it stays open


def insert(
    connection: sqlite3.Connection, verb: str, table: str, row: Mapping[str, Any]
) -> None:
    """Insert a row (or ignore it, as the verb says), lists and mappings as JSON."""
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in row)
    places = ", ".join("?" * len(row))
    statement = f"{verb} INTO {table} ({columns}) VALUES ({places})"
    connection.execute(statement, [_column(name, value) for name, value in row.items()])


def _column(name: str, value: Any) -> Any:
    if isinstance(value, Curves):
        return value.to_bytes()
    is_json = name in _JSON_COLUMNS and isinstance(value, dict | list)
    return json.dumps(value, allow_nan=False) if is_json else value


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; no other writer may start from its first statement on."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk has rolled it back already
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        file = ""
        with suppress(sqlite3.Error):
            file = connection.execute("PRAGMA database_list").fetchone()["file"]
        raise InputError(f"'store' {file!r} cannot be written ({error})") from error


def _create(connection: sqlite3.Connection) -> None:
    # One by one: executescript would end the transaction.
    for statement in _SCHEMA.read_text("utf-8").split(";"):
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION_ID:
        raise InputError(f"'store' {str(path)!r} is no store of ecg-gnn")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"'store' {str(path)!r} must have schema {SCHEMA_VERSION} (got {version}, "
            "from another version of ecg-gnn)"
        )


def _check_whole(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse strangers' tables (a view may never end), and a file that lost rows."""
    _check_version(connection, path)
    with closing(open_in_memory()) as ours:
        expected = ours.execute(_SHAPE).fetchall()
    if connection.execute(_SHAPE).fetchall() != expected:
        tables = f"the tables of schema {SCHEMA_VERSION} (got others)"
        raise InputError(f"'store' {str(path)!r} must have {tables}")
    reason = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if reason == "ok" and connection.execute(_ROWS_ARE_MISSING).fetchone()[0]:
        reason = "rows are missing"
    if reason != "ok":
        reason = " ".join(reason.split())
        raise InputError(f"'store' {str(path)!r} is damaged ({reason})")
