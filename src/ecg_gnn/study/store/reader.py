"""Reading a store: its records, and which process runs what is not finished."""

import json
import os
import platform
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from ecg_gnn.reading import first_line
from ecg_gnn.study.store import rows as stored
from ecg_gnn.study.store.rows import Curves, newest
from ecg_gnn.study.store.schema import TEXT_ENDING, open_existing
from ecg_gnn.study.store.text import read_records
from ecg_gnn.system.checks import InputError, check_choice


def owner_of(pid: int) -> str | None:
    """A running process of this machine, as the owner of a claim is written.

    Its start time tells it from a later one with the same number. SQLite shares a store
    on one machine only; the machine is its host and its namespace of process numbers.
    """
    if (started := _started(pid)) is None:
        return None
    machine = [platform.node(), _read("/proc/sys/kernel/random/boot_id")]
    with suppress(OSError):
        machine.append(os.readlink("/proc/self/ns/pid"))
    return json.dumps({"machine": "/".join(machine), "pid": pid, "started": started})


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in clock ticks; None if there is no such process."""
    if stat := _read(f"/proc/{pid}/stat"):
        fields = stat.rpartition(")")[2].split()  # a name may hold spaces and brackets
        return None if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return None
    with suppress(PermissionError):
        try:  # no /proc here: a number in use has to be enough
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
    return ""


_OF_RECIPE = (
    "(:recipe IS NULL OR units.id IN (SELECT unit FROM members WHERE recipe = :recipe))"
)
_Row = TypeVar("_Row")


class Store:
    """The records of studies; open it, read, close it (or use ``with``).

    with Store.open("study.sqlite") as store:
        for record in store.records(task="train"):
            print(record.configuration.model, record.split, record.result.test)
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an existing store, or a text of one, while others may write to it."""
        path = Path(path)
        if path.suffix != TEXT_ENDING:
            return cls(open_existing(path), path)
        store = cls(read_records(path), path)
        store.records(), store.failures()  # a text is refused as a whole
        return store

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def recipes(self) -> list[str]:
        """Names of the recipes that were run into this store."""
        query = "SELECT DISTINCT recipe FROM members ORDER BY recipe"
        return self._read(lambda row: row["recipe"], query)

    def recipes_of_units(self) -> dict[str, list[str]]:
        """The recipes that every unit belongs to."""
        recipes: dict[str, list[str]] = {}
        for row in self._read(dict, "SELECT * FROM members ORDER BY recipe"):
            recipes.setdefault(row["unit"], []).append(row["recipe"])
        return recipes

    def datasets(self) -> list[stored.DatasetInfo]:
        """The graphs, with the statistics of their own edges."""
        info = partial(stored.from_row, stored.DatasetInfo)
        return self._read(info, "SELECT * FROM datasets ORDER BY rowid")

    def configurations(self) -> dict[str, stored.Configuration]:
        """Every configuration by its id, in the order in which they came."""
        graphs = {(graph.name, graph.sha256) for graph in self.datasets()}

        def configuration(row: dict[str, Any]) -> stored.Configuration:
            at: stored.Configuration = stored.from_row(stored.Configuration, row)
            if (at.dataset, at.dataset_sha256) not in graphs:
                raise InputError(f"the graph {at.dataset!r} is not described")
            # Only settings that this version knows, those not given at their defaults.
            return replace(at, config=at.settings.to_dict())

        query = "SELECT * FROM configurations ORDER BY rowid"
        return {at.id: at for at in self._read(configuration, query)}

    def records(
        self, *, recipe: str | None = None, task: str | None = None
    ) -> list[stored.UnitRecord]:
        """Finished units of a recipe or task, by configuration, split and seed."""
        found = self._ended("records", stored.UnitRecord, recipe)
        return [unit for unit in found if task in (None, unit.configuration.task)]

    def failures(self, *, recipe: str | None = None) -> list[stored.Failure]:
        """Units that could not be finished, with their errors."""
        return self._ended("failures", stored.Failure, recipe)

    def _ended(self, table: str, kind: Any, recipe: str | None) -> list[Any]:
        self._check_recipe(recipe)
        known = self.configurations()

        def unit(row: dict[str, Any]) -> Any:
            at = known[row["configuration"]]
            return stored.from_row(kind, row | {"configuration": at})

        asked = f"PRAGMA table_info({table})"  # curves are large
        columns = self._read(lambda row: row["name"], asked)
        named = ", ".join(name for name in columns if name != "curves")
        query = (
            f"SELECT {named}, units.* FROM {table} JOIN units ON units.id = unit "
            "JOIN configurations ON configurations.id = units.configuration "
            f"WHERE {_OF_RECIPE} ORDER BY configurations.rowid, split, seed"
        )
        return self._read(unit, query, recipe=recipe)

    def curves(self, unit: str) -> Curves | None:
        """Loss, validation and test score of every step of one unit, if kept."""
        query = "SELECT curves FROM records WHERE unit = :unit AND curves IS NOT NULL"
        kept = self._read(
            lambda row: Curves.from_bytes(row["curves"]), query, unit=unit
        )
        return kept[0] if kept else None

    def progress(self, *, recipe: str | None = None) -> list[stored.Progress]:
        """How many units of every dataset, model and variant are in which state.

        A unit whose process died counts as missing: the next run takes it. Units of
        older numerics are not counted where there are newer ones.
        """
        self._check_recipe(recipe)
        known = self.configurations()
        names = ("dataset", "backbone", "model", "task", "variant", "embedding", "tags")
        counting = newest(known.values(), "dataset_sha256", *names)
        counts: dict[tuple[Any, ...], dict[str, Any]] = {}

        def count(row: dict[str, Any]) -> None:
            at = known[row["configuration"]]
            if at.id in counting:
                key = tuple(getattr(at, name) for name in names)
                counted = counts.setdefault(key, defaultdict(int))
                counted[state_of(row)] += 1
                counted["seconds"] += row["seconds"] or 0

        query = (
            "SELECT configuration, state, owner, seconds FROM units "
            "LEFT JOIN records ON unit = units.id "
            f"WHERE {_OF_RECIPE} ORDER BY units.rowid"
        )
        self._read(count, query, recipe=recipe)
        return [
            stored.Progress(**dict(zip(names, key, strict=True)), **counted)
            for key, counted in counts.items()
        ]

    def _check_recipe(self, recipe: str | None) -> None:
        if recipe is not None:
            check_choice("recipe", recipe, self.recipes())

    def _read(
        self, make: Callable[[dict[str, Any]], _Row], query: str, **values: Any
    ) -> list[_Row]:
        """What is made of every row; says which store cannot be read, and why."""
        try:
            rows = self._connection.execute(query, values)
            return [make(dict(row)) for row in rows]
        except Exception as error:
            raise InputError(
                f"'store' {str(self.path)!r} is damaged, or of another version of "
                f"ecg-gnn ({first_line(error)})"
            ) from error


def state_of(unit: Mapping[str, Any] | sqlite3.Row) -> str:
    """A unit's state; one whose process died is missing."""
    running = unit["state"] == "running"
    if running and owner_of(json.loads(unit["owner"])["pid"]) != unit["owner"]:
        return "missing"
    return str(unit["state"])
