"""Reading a store: what tables, figures and reports stand on."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ecg_gnn.checks import check_choice
from ecg_gnn.study.store.curves import Curves
from ecg_gnn.study.store.owner import Owner
from ecg_gnn.study.store.rows import (
    Configuration,
    DatasetInfo,
    Failure,
    Progress,
    Result,
    UnitRecord,
)
from ecg_gnn.study.store.schema import open_existing

_OF_RECIPE = (
    "(:recipe IS NULL OR units.id IN (SELECT unit FROM members WHERE recipe = :recipe))"
)


class Store:
    """The records of studies; open it, read, close it (or use ``with``).

        with Store.open("study.sqlite") as store:
            for record in store.records(task="train"):
                print(record.configuration.model, record.split, record.result.test)

    Args:
        connection: An open database with this schema.
        path: Its file.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an existing store for reading; others may be writing to it.

        Raises:
            InputError: If there is none, or the file is something else.
        """
        return cls(open_existing(Path(path)), Path(path))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def recipes(self) -> list[str]:
        """Names of the recipes that were run into this store."""
        found = self._rows("SELECT DISTINCT recipe FROM members ORDER BY recipe")
        return [row["recipe"] for row in found]

    def datasets(self) -> list[DatasetInfo]:
        """The graphs, with the statistics of their own edges."""
        rows = map(dict, self._rows("SELECT * FROM datasets ORDER BY rowid"))
        return [
            DatasetInfo(**row | {"statistics": json.loads(row["statistics"])})
            for row in rows
        ]

    def configurations(self) -> dict[str, Configuration]:
        """Every configuration by its id, in the order in which they came."""
        rows = map(dict, self._rows("SELECT * FROM configurations ORDER BY rowid"))
        return {
            row["id"]: Configuration(**row | {"config": json.loads(row["config"])})
            for row in rows
        }

    def records(
        self, *, recipe: str | None = None, task: str | None = None
    ) -> list[UnitRecord]:
        """Finished units, by configuration, split and seed.

        Args:
            recipe: Only units of this recipe.
            task: ``train`` or ``statistics``; None is both.
        """
        columns = "val, test, best_step, seconds, peak_memory_mb, evolved_statistics"
        found = self._joined("records", columns, recipe)
        return [_record(*row) for row in found if task in (None, row[0].task)]

    def failures(self, *, recipe: str | None = None) -> list[Failure]:
        """Units that could not be finished, with their errors."""
        return [
            Failure(
                **_common(configuration, row),
                kind=row["kind"],
                error=row["error"],
                provenance=json.loads(row["provenance"]),
            )
            for configuration, row in self._joined("failures", "kind, error", recipe)
        ]

    def curves(self, unit: str) -> Curves | None:
        """Loss, validation and test score of every step of one unit, if kept."""
        query = "SELECT curves FROM records WHERE unit = :unit AND curves IS NOT NULL"
        found = list(self._rows(query, unit=unit))
        return Curves.from_bytes(found[0]["curves"]) if found else None

    def progress(self, *, recipe: str | None = None) -> list[Progress]:
        """How many units of every dataset, model and variant are in which state.

        A unit whose process died counts as missing: the next run takes it. Units of
        older numerics are not counted where there are newer ones.
        """
        self.check_recipe(recipe)
        query = (
            "SELECT units.*, records.seconds FROM units LEFT JOIN records "
            f"ON records.unit = units.id WHERE {_OF_RECIPE} ORDER BY units.rowid"
        )
        configurations = self.configurations()
        newest = max((at.numerics for at in configurations.values()), default=0)
        found: dict[Progress, Progress] = {}
        for row in self._rows(query, recipe=recipe):
            at = configurations[row["configuration"]]
            if at.numerics < newest:
                continue
            row_of = Progress(
                dataset=at.dataset,
                backbone=at.backbone,
                model=at.model,
                task=at.task,
                variant=at.variant,
                embedding=at.embedding,
            )
            found[row_of] = _counted(found.get(row_of, row_of), row)
        return list(found.values())

    def check_recipe(self, recipe: str | None) -> None:
        """Refuse a recipe that was never run into this store."""
        if recipe is not None:
            check_choice("recipe", recipe, self.recipes())

    def _joined(
        self, table: str, columns: str, recipe: str | None
    ) -> Iterator[tuple[Configuration, sqlite3.Row]]:
        self.check_recipe(recipe)
        query = (
            "SELECT units.id, units.configuration, units.split, units.seed, "
            f"{columns}, {table}.provenance, {table}.finished FROM {table} "
            f"JOIN units ON units.id = {table}.unit "
            "JOIN configurations ON configurations.id = units.configuration "
            f"WHERE {_OF_RECIPE} ORDER BY configurations.rowid, split, seed"
        )
        configurations = self.configurations()
        for row in self._rows(query, recipe=recipe):
            yield configurations[row["configuration"]], row

    def _rows(self, query: str, **values: Any) -> Iterator[sqlite3.Row]:
        return iter(self._connection.execute(query, values).fetchall())


def _common(configuration: Configuration, row: sqlite3.Row) -> dict[str, Any]:
    names = ("id", "split", "seed", "finished")
    return {"configuration": configuration, **{name: row[name] for name in names}}


def _record(configuration: Configuration, row: sqlite3.Row) -> UnitRecord:
    result = Result(
        val=row["val"],
        test=row["test"],
        best_step=row["best_step"],
        seconds=row["seconds"],
        peak_memory_mb=row["peak_memory_mb"],
        evolved_statistics=json.loads(row["evolved_statistics"]),
        provenance=json.loads(row["provenance"]),
    )
    return UnitRecord(**_common(configuration, row), result=result)


def _counted(progress: Progress, row: sqlite3.Row) -> Progress:
    state = row["state"]
    if state == "running" and not Owner.from_text(row["owner"]).lives(row["heartbeat"]):
        state = "missing"
    changed = {state: getattr(progress, state) + 1}
    return replace(
        progress, **changed, seconds=progress.seconds + (row["seconds"] or 0)
    )
