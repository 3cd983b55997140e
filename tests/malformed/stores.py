"""Stores of records whose file is damaged, or whose rows say odd things."""

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from ecg_gnn.config.identity import unit_id
from ecg_gnn.study.store import Store, write_records
from malformed.case import Case, damaged, spoiled
from small_runs import STATISTICS
from small_studies import HandmadeStore

STATUS = ("study", "status", "--store", "s.sqlite", "--json")
TABLES = tuple(
    ("study", "table", name, "--store", "s.sqlite", "--format", form)
    for name in ("results", "statistics", "hyperparameters", "embeddings")
    for form in ("json", "md")
)
REPORT = ("study", "report", "--store", "s.sqlite", "--out", "report.html")
READERS = (STATUS, *TABLES, REPORT)

_ABSURD = {
    "TEXT": ("X'FF'", "X''", "'x'", "'{'", "'[]'", "'null'", "'[1e999]'"),
    "INTEGER": ("X'FF'", "'x'", "1.5", "9e999"),
    "REAL": ("X'FF'", "'x'", "9e999"),
    "BLOB": ("X'FF'", "'x'", "3"),
}
# Any text will do there.
_FREE = {"note", "error", "finished", "recipe", "id", "unit", "configuration", "name"}
_FREE |= {"sha256", "dataset", "dataset_sha256", "embedding", "owner"}
_TRIGGER = "CREATE TRIGGER t AFTER INSERT ON {} BEGIN DELETE FROM records; END"


def make_store(path):
    """Two models with baseline, ECG and control; a failure; measured graphs."""
    made = HandmadeStore(path)
    for model in ("gcn", "sage"):
        for embedding in (None, "mlp", "identity"):
            made.add([0.5, 0.625, 0.75], model=model, embedding=embedding)
    row = dict.fromkeys(STATISTICS, 0.5)
    made.add([None], embedding="bgrl", task="statistics", statistics=row)
    lost = made.add([None], model="gat")
    made.writer.fail(
        unit_id(lost.id, 0, 0), "error", "it was too much", {"torch": "2.0"}
    )
    made.writer.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")


def store_cases(content: bytes, folder: Path):
    """For what reads a store: its status, its tables and its report.

    Args:
        content: A valid store.
        folder: Where others may be made.
    """
    (folder / "whole.sqlite").write_bytes(content)
    changes = [*damaged(content, 60), *_rewritten(folder, content)]
    for turn, (how, changed) in enumerate(changes):
        asked = READERS[turn % len(READERS)]
        yield Case(f"{how} for {asked[1]}", asked, {"s.sqlite": changed})
    for form in ("", "nothing", "../x"):
        yield Case(
            f"recipe {form!r}", (*STATUS, "--recipe", form), {"s.sqlite": content}
        )


def _rewritten(folder, content):
    for how, statement in _statements(folder / "whole.sqlite"):
        path = folder / "changed.sqlite"
        path.write_bytes(content)
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            with suppress(sqlite3.IntegrityError):
                connection.execute(statement)
        if (changed := path.read_bytes()) != content:
            yield how, changed


def _statements(path):
    with closing(sqlite3.connect(path)) as connection:
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE type = 'table'"
            )
        ]
        columns = {
            name: connection.execute(f"PRAGMA table_info({name})").fetchall()
            for name in names
        }
    for table, found in columns.items():
        yield f"no {table}", f"DROP TABLE {table}"
        yield f"empty {table}", f"DELETE FROM {table}"
        yield f"{table} renamed", f"ALTER TABLE {table} RENAME TO old_{table}"
        yield f"{table} with more", f"ALTER TABLE {table} ADD COLUMN more TEXT"
        yield f"{table} with a trigger", _TRIGGER.format(table)
        for _, name, kind, *_ in found:
            for value in _ABSURD[kind]:
                if name not in _FREE or value.startswith("X"):
                    how = f"{table}.{name} = {value}"
                    yield how, f"UPDATE {table} SET {name} = {value}"
            yield f"{table}.{name} = NULL", f"UPDATE {table} SET {name} = NULL"
    yield "a view", "CREATE VIEW v AS SELECT 1"
    for number in (0, 2, 99, -1):
        yield f"schema {number}", f"PRAGMA user_version = {number}"
        yield f"of program {number}", f"PRAGMA application_id = {number}"


def text_cases(content: bytes, folder: Path):
    """Stores as text, line by line.

    Args:
        content: A valid store.
        folder: Where others may be made.
    """
    (folder / "as_text.sqlite").write_bytes(content)
    with Store.open(folder / "as_text.sqlite") as store:
        write_records(store, folder / "s.jsonl")
    text = (folder / "s.jsonl").read_bytes()
    lines = text.splitlines(keepends=True)
    asked = [
        tuple("s.jsonl" if word == "s.sqlite" else word for word in command)
        for command in READERS
    ]
    changes = list(damaged(text, 15))
    for place in (0, 1, 2, len(lines) - 1):
        rest = (b"".join(lines[:place]), b"".join(lines[place + 1 :]))
        changes.append((f"line {place} twice", rest[0] + 2 * lines[place] + rest[1]))
        for where, value in spoiled(json.loads(lines[place]), (None, [], "\ud800")):
            line = json.dumps(value).encode() + b"\n"
            name = f"line {place} {' '.join(map(repr, where))}"
            changes.append((name, rest[0] + line + rest[1]))
    for turn, (how, changed) in enumerate(changes):
        times, which = divmod(turn, len(asked))
        # A report draws figures, which takes long: every third time is enough.
        left_out = asked[which][1] == "report" and times % 3
        yield Case(how, asked[0 if left_out else which], {"s.jsonl": changed})
