"""Reading a store: what tables, figures and reports stand on."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ecg_gnn.config import RunConfig
from ecg_gnn.reading import first_line, read_json
from ecg_gnn.study.store.checked import check_result, check_statistics, checked
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
from ecg_gnn.study.store.schema import TEXT_ENDING, open_existing
from ecg_gnn.study.store.text_reader import read_records
from ecg_gnn.system.checks import InputError, check_choice

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
        self._configs: dict[str, dict[str, Any]] = {}

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open an existing store for reading; others may be writing to it.

        A file that ends in ``.jsonl`` is a store as text, which is read into memory.

        Raises:
            InputError: If there is none, or the file is something else.
        """
        is_text = Path(path).suffix == TEXT_ENDING
        opened = (read_records if is_text else open_existing)(Path(path))
        return cls(opened, Path(path))

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
        with self._whole():
            found = self._rows("SELECT DISTINCT recipe FROM members ORDER BY recipe")
            return [str(row["recipe"]) for row in found]

    def recipes_of_units(self) -> dict[str, list[str]]:
        """The recipes that every unit belongs to."""
        found: dict[str, list[str]] = {}
        with self._whole():
            for row in self._rows("SELECT unit, recipe FROM members ORDER BY recipe"):
                found.setdefault(row["unit"], []).append(row["recipe"])
        return found

    def datasets(self) -> list[DatasetInfo]:
        """The graphs, with the statistics of their own edges."""
        with self._whole():
            rows = map(dict, self._rows("SELECT * FROM datasets ORDER BY rowid"))
            return [_dataset(row) for row in rows]

    def configurations(self) -> dict[str, Configuration]:
        """Every configuration by its id, in the order in which they came."""
        graphs = {(graph.name, graph.sha256) for graph in self.datasets()}
        with self._whole():
            rows = map(dict, self._rows("SELECT * FROM configurations ORDER BY rowid"))
            found = {row["id"]: self._configuration(row) for row in rows}
            for at in found.values():
                if (at.dataset, at.dataset_sha256) not in graphs:
                    raise InputError(f"the graph {at.dataset!r} is not described")
            return found

    def records(
        self, *, recipe: str | None = None, task: str | None = None
    ) -> list[UnitRecord]:
        """Finished units, by configuration, split and seed.

        Args:
            recipe: Only units of this recipe.
            task: ``train`` or ``statistics``; None is both.
        """
        self.check_recipe(recipe)
        columns = "val, test, best_step, seconds, peak_memory_mb, evolved_statistics"
        with self._whole():
            found = self._joined("records", columns, recipe)
            return [_record(*row) for row in found if task in (None, row[0].task)]

    def failures(self, *, recipe: str | None = None) -> list[Failure]:
        """Units that could not be finished, with their errors."""
        self.check_recipe(recipe)
        with self._whole():
            return [
                _failure(*row)
                for row in self._joined("failures", "kind, error", recipe)
            ]

    def curves(self, unit: str) -> Curves | None:
        """Loss, validation and test score of every step of one unit, if kept."""
        query = "SELECT curves FROM records WHERE unit = :unit AND curves IS NOT NULL"
        with self._whole():
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
        with self._whole():
            for row in self._rows(query, recipe=recipe):
                at = configurations[row["configuration"]]
                if at.numerics == newest:
                    row_of = _row_of(at)
                    found[row_of] = _counted(found.get(row_of, row_of), row)
        return list(found.values())

    def check_recipe(self, recipe: str | None) -> None:
        """Refuse a recipe that was never run into this store."""
        if recipe is not None:
            check_choice("recipe", recipe, self.recipes())

    def _joined(
        self, table: str, columns: str, recipe: str | None
    ) -> Iterator[tuple[Configuration, sqlite3.Row]]:
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

    def _configuration(self, row: dict[str, Any]) -> Configuration:
        """Settings that this version knows, those not given at their defaults."""
        text = row["config"]
        if text not in self._configs:  # the same for all that read the store
            config = RunConfig.from_dict(read_json("settings", text))
            self._configs[text] = config.to_dict()
        return checked(Configuration, row | {"config": self._configs[text]})

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Say of which store it is that a part cannot be read, and why."""
        try:
            yield
        except DamagedStoreError:
            raise
        except Exception as error:
            raise DamagedStoreError(
                f"'store' {str(self.path)!r} is damaged, or of another version of "
                f"ecg-gnn ({first_line(error)})"
            ) from error


class DamagedStoreError(InputError):
    """A store whose tables are there, but not all that must be in them."""


def _dataset(row: dict[str, Any]) -> DatasetInfo:
    statistics = read_json("statistics", row["statistics"])
    found = checked(DatasetInfo, row | {"statistics": statistics})
    check_statistics(found.statistics)
    return found


def _row_of(at: Configuration) -> Progress:
    return Progress(
        dataset=at.dataset,
        backbone=at.backbone,
        model=at.model,
        task=at.task,
        variant=at.variant,
        embedding=at.embedding,
        tags=at.tags,
    )


def _common(configuration: Configuration, row: sqlite3.Row) -> dict[str, Any]:
    names = ("id", "split", "seed", "finished")
    return {"configuration": configuration, **{name: row[name] for name in names}}


def _record(configuration: Configuration, row: sqlite3.Row) -> UnitRecord:
    names = ("val", "test", "best_step", "seconds", "peak_memory_mb")
    texts = ("evolved_statistics", "provenance")
    values = {name: row[name] for name in names}
    values |= {name: read_json(name, row[name]) for name in texts}
    result = checked(Result, values)
    check_result(configuration, result)
    return checked(UnitRecord, _common(configuration, row) | {"result": result})


def _failure(configuration: Configuration, row: sqlite3.Row) -> Failure:
    values = {name: row[name] for name in ("kind", "error")}
    values["provenance"] = read_json("provenance", row["provenance"])
    return checked(Failure, _common(configuration, row) | values)


def _counted(progress: Progress, row: sqlite3.Row) -> Progress:
    state = row["state"]
    if state == "running" and not Owner.from_text(row["owner"]).lives(row["heartbeat"]):
        state = "missing"
    changed = {state: getattr(progress, state) + 1}
    return replace(
        progress, **changed, seconds=progress.seconds + (row["seconds"] or 0)
    )
