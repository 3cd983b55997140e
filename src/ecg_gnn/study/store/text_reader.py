"""Reading a store that :mod:`text_writer` wrote: into memory, line by line, checked."""

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.config import RunConfig
from ecg_gnn.study.statistics import STATISTICS, Statistics
from ecg_gnn.study.store.checked import checked
from ecg_gnn.study.store.curves import Curve, Curves, Places
from ecg_gnn.study.store.rows import Configuration, DatasetInfo, Result
from ecg_gnn.study.store.schema import insert_row, open_in_memory, transaction
from ecg_gnn.system.checks import InputError, check_choice

FORMAT = "ecg_gnn_records"
COUNT = "units"
"""Beside the format: how many units follow. Older files do not say."""
VERSION = 1
SERIES = {
    "loss": ("losses", 1e3),
    "val": ("val_scores", 1e4),
    "test": ("test_scores", 1e4),
}
"""Curves by their names in the text: the field, and how many units make one."""
_DAMAGES = (
    *(OSError, ValueError, TypeError, KeyError, OverflowError),
    *(RecursionError, sqlite3.Error),
)
_MOST_STEPS = 10_000_000
"""Of a curve: more would be a mistake, and a lot of memory."""


def read_records(path: Path) -> sqlite3.Connection:
    """The lines of a file as a database in memory.

    Raises:
        InputError: If there is no such file, it is of another version, or a line of it
            is not as it was written; the line is named.
    """
    if not path.is_file():
        raise InputError(f"'store' {str(path)!r} does not exist")
    loader, number = _Loader(open_in_memory()), 0
    try:
        with path.open(encoding="utf-8") as lines, transaction(loader.connection):
            for number, line in enumerate(lines, 1):
                loader.add(_parsed(line), first=number == 1)
        if number == 0:
            raise InputError("the file is empty")
        loader.check_whole()
    except _DAMAGES as error:
        loader.connection.close()
        said = f"{error} is not there" if isinstance(error, KeyError) else error
        raise InputError(
            f"'store' {str(path)!r} cannot be read (line {number}: {said})"
        ) from None
    loader.connection.execute("PRAGMA query_only = ON")
    return loader.connection


def _parsed(line: str) -> dict[str, Any]:
    row = json.loads(line, parse_constant=_refused)
    if not isinstance(row, dict) or not row:
        raise InputError(f"must be a JSON object (got {line[:40]!r})")
    return row


def _check_version(kind: str, version: Any) -> None:
    if kind != FORMAT:
        raise InputError("the file has no records of ecg-gnn")
    if version != VERSION:
        raise InputError(
            f"the format must be version {VERSION} (got {version!r}, from another "
            "version of ecg-gnn)"
        )


def _checked_count(count: Any) -> int | None:
    if count is not None and (type(count) is not int or count < 0):
        raise InputError(f"{COUNT!r} must be a whole number (got {count!r})")
    return count


def _refused(constant: str) -> None:
    raise InputError(f"must have finite numbers (got {constant})")


@dataclass(frozen=True, kw_only=True)
class _Unit:
    """What a finished and a failed unit have in common."""

    id: str
    split: int
    seed: int
    recipes: list[str]
    made_with: str
    finished: str


@dataclass(frozen=True, kw_only=True)
class _Failed:
    kind: str
    error: str


class _Loader:
    """Puts one line after another into the tables of a store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.at: Configuration | None = None
        self.promised: int | None = None
        self.units = 0
        self.datasets: set[tuple[str, str]] = set()
        self.shared: dict[str, dict[str, Any]] = {
            kind: {} for kind in ("provenance", "statistics", "steps")
        }

    def add(self, row: dict[str, Any], *, first: bool) -> None:
        kind, value = next(iter(row.items()))
        if first:
            _check_version(kind, value)
            self.promised = _checked_count(row.get(COUNT))
            return
        check_choice("a line", kind, [*self.shared, *self._kinds()])
        if kind in self.shared:
            self.shared[kind][row["key"]] = value
        else:
            self._kinds()[kind](value)

    def check_whole(self) -> None:
        """Refuse a file that was cut between two lines."""
        if self.promised is not None and self.units != self.promised:
            raise InputError(
                f"must be {self.promised} units, as the first line says (got "
                f"{self.units}): the file is not whole"
            )

    def _kinds(self) -> dict[str, Callable[[Any], None]]:
        return {
            "dataset": self._dataset,
            "configuration": self._configuration,
            "unit": self._unit,
        }

    def _dataset(self, value: Any) -> None:
        info = checked(DatasetInfo, value)
        _check_measures(info.statistics)
        self.datasets.add((info.name, info.sha256))
        self._insert("datasets", asdict(info), ["statistics"])

    def _configuration(self, value: Any) -> None:
        at = checked(Configuration, value)
        if (at.dataset, at.dataset_sha256) not in self.datasets:
            raise InputError(f"the dataset {at.dataset!r} is not there")
        # Refuses what this version cannot read, and fills in what an older one lacked.
        self.at = replace(at, config=RunConfig.from_dict(at.config).to_dict())
        self._insert("configurations", asdict(self.at), ["config"])

    def _unit(self, value: Any) -> None:
        if self.at is None:
            raise InputError("a unit must follow its configuration")
        if not isinstance(value, dict):
            raise InputError(f"a unit must be a JSON object (got {value!r})")
        failure = value.pop("failure", None)
        names = [field.name for field in fields(_Unit)]
        unit = checked(_Unit, {name: value.pop(name) for name in names})
        row = {"id": unit.id, "configuration": self.at.id, "split": unit.split}
        row |= {"seed": unit.seed, "state": "failed" if failure else "done"}
        self._insert("units", row)
        self.units += 1
        for recipe in unit.recipes:
            self._insert("members", {"recipe": recipe, "unit": unit.id})
        made_with = self.shared["provenance"][unit.made_with]
        ended: dict[str, Any] = {"unit": unit.id, "finished": unit.finished}
        ended |= {"provenance": made_with}
        if failure:
            ended |= asdict(checked(_Failed, failure))
            self._insert("failures", ended, ["provenance"])
        else:
            ended |= self._result(self.at, value, made_with)
            self._insert("records", ended, ["evolved_statistics", "provenance"])

    def _result(
        self, at: Configuration, value: dict[str, Any], made_with: Mapping[str, Any]
    ) -> dict[str, Any]:
        found = [self.shared["statistics"][key] for key in value.pop("evolved")]
        curves = value.pop("curves", None)
        values = value | {"evolved_statistics": found, "provenance": made_with}
        result = checked(Result, values | {"curves": curves and self._curves(curves)})
        for row in result.evolved_statistics:
            _check_measures(row)
        if len(found) != (at.embedding.count(",") + 1 if at.embedding else 0):
            raise InputError("every evolved graph of a unit must have its statistics")
        if at.task == "train" and None in (result.val, result.test):
            raise InputError("a training must have its scores")
        kept = {field.name: getattr(result, field.name) for field in fields(result)}
        if result.curves is not None:
            kept["curves"] = result.curves.to_bytes(level=1)  # for memory only
        return kept

    def _curves(self, value: Mapping[str, Any]) -> Curves:
        places = np.array(self.shared["steps"][value["steps"]], dtype=np.int64) - 1
        if not places.size or places.min() < 0 or places.max() >= _MOST_STEPS:
            raise InputError(f"steps must be in [1, {_MOST_STEPS}]")
        return Curves(
            **{
                field: _restored(value[name], places, units)
                for name, (field, units) in SERIES.items()
            }
        )

    def _insert(
        self, table: str, row: Mapping[str, Any], json_columns: list[str] | None = None
    ) -> None:
        insert_row(self.connection, table, row, json_columns or [])


def _check_measures(found: Statistics) -> None:
    if not STATISTICS.keys() <= found.keys():
        raise InputError(f"statistics must have {[*STATISTICS]} (got {[*found]})")


def _restored(changes: Sequence[int | None], places: Places, units: float) -> Curve:
    """A curve as long as it was, with numbers where they were kept."""
    curve = np.full(places.max() + 1, np.nan, dtype=np.float32)
    now = 0
    for place, change in zip(places, changes, strict=True):
        if change is not None:
            now += change
            curve[place] = now / units
    return curve
