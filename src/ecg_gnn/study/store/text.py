"""A store as lines of text: small, readable in a diff, kept by git for years.

One JSON object per line. The first names the format and says how many units there are,
so that a file cut short is noticed; then come the graphs, then the configurations, each
followed by its finished and failed units. What many units share is written once, before
its first use, under a key made from its content:

    {"ecg_gnn_records": 1, "units": 150}
    {"dataset": {"name": "minesweeper", "sha256": "e664…", …}}
    {"configuration": {"id": "9d20635a0f376bf0", "variant": "baseline", …}}
    {"provenance": {"commit": "5c3e8c2b1d00", "device_name": …}, "key": "7c9e21d0"}
    {"steps": [1, 43, …, 1000], "key": "05b1ee47"}
    {"unit": {"id": …, "split": 0, "test": 0.8975, …, "made_with": "7c9e21d0"}}
    {"unit": {"id": …, "split": 1, "failure": {"kind": "error", …}, …}}

Every number is exact except those of training curves, which are thinned and rounded.
Claims are left out: what is running or missing is no record.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn.config import RunConfig
from ecg_gnn.study.store import rows as stored
from ecg_gnn.study.store.curves import Curves, known_steps, thinned
from ecg_gnn.study.store.schema import TEXT_ENDING, insert, open_in_memory, transaction
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import write_text

if TYPE_CHECKING:
    from ecg_gnn.study.store.reader import Store

_FORMAT, _VERSION = "ecg_gnn_records", 1
_COUNT = "units"  # how many follow; older files do not say
_SHARED = ("provenance", "statistics", "steps")
_NUMBERS = ("val", "test", "best_step", "seconds", "peak_memory_mb")
_DAMAGES = (OSError, ValueError, TypeError, LookupError, RecursionError)


def write_records(store: "Store", path: Path, *, curve_points: int = 25) -> int:
    """Write what a store knows about finished and failed units; returns how many.

    The same records give the same text, whatever the order in which they were made.
    Of every training curve as many points are kept; 0 keeps no curves.
    """
    check_in_range("curve_points", curve_points, 0, None)
    if path.suffix != TEXT_ENDING:
        raise InputError(f"'out' must end in {TEXT_ENDING!r} (got {str(path)!r})")
    # Not in the order in which processes happened to run them.
    units: list[stored.UnitRecord | stored.Failure] = [*store.records()]
    units = sorted([*units, *store.failures()], key=_place)
    recipes = store.recipes_of_units()
    lines = {_line({_FORMAT: _VERSION, _COUNT: len(units)}): None}

    def share(kind: str, value: Any) -> str:
        """The key of a value, which has a line of its own."""
        key = hashlib.sha256(_line({kind: value}).encode()).hexdigest()[:8]
        lines[_line({kind: value, "key": key})] = None  # where it stands already
        return key

    for dataset in sorted(store.datasets(), key=lambda each: (each.name, each.sha256)):
        lines[_line({"dataset": asdict(dataset)})] = None
    for unit in units:
        lines[_line({"configuration": asdict(unit.configuration)})] = None
        row: dict[str, Any] = {"id": unit.id, "split": unit.split, "seed": unit.seed}
        row["recipes"] = recipes[unit.id]
        if isinstance(unit, stored.Failure):
            made_with = unit.provenance
            row["failure"] = {"kind": unit.kind, "error": unit.error}
        else:
            result, made_with = unit.result, unit.result.provenance
            row |= {name: getattr(result, name) for name in _NUMBERS}
            row["evolved"] = [share("statistics", g) for g in result.evolved_statistics]
            curves = store.curves(unit.id) if curve_points else None
            if curves is not None and curves.losses.size:
                places = thinned(known_steps([curves]), curve_points)
                steps = share("steps", (places + 1).tolist())
                row["curves"] = {"steps": steps, **curves.to_text(places)}
        row["made_with"] = share("provenance", dict(made_with))
        lines[_line({"unit": row | {"finished": unit.finished}})] = None
    write_text(path, "\n".join([*lines, ""]))
    return len(units)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _place(unit: stored.UnitRecord | stored.Failure) -> tuple[Any, ...]:
    at = unit.configuration
    where = at.dataset, at.dataset_sha256, at.task, at.backbone, at.model
    return *where, at.variant, at.embedding or "", at.numerics, at.id, unit.pair


def read_records(path: Path) -> sqlite3.Connection:
    """The lines of a file as a database in memory: all that reads a store reads it."""
    if not path.is_file():
        raise InputError(f"'store' {str(path)!r} does not exist")
    loader, number = _Loader(open_in_memory()), 0
    try:
        with path.open(encoding="utf-8") as lines, transaction(loader.connection):
            for number, line in enumerate(lines, 1):
                row = json.loads(line, parse_constant=_refuse_constant)
                if not isinstance(row, dict) or not row:
                    raise InputError(f"must be a JSON object (got {line[:40]!r})")
                (loader.start if number == 1 else loader.add)(row)
        if not number:
            raise InputError("the file is empty")
        if loader.promised not in (None, loader.units):
            raise InputError(
                f"must be {loader.promised} units, as the first line says (got "
                f"{loader.units}): the file is not whole"
            )
    except (*_DAMAGES, ArithmeticError, sqlite3.Error) as error:
        loader.connection.close()
        said = f"{error} is not there" if isinstance(error, KeyError) else error
        raise InputError(
            f"'store' {str(path)!r} cannot be read (line {number}: {said})"
        ) from None
    loader.connection.execute("PRAGMA query_only = ON")
    return loader.connection


def _refuse_constant(constant: str) -> None:
    raise InputError(f"must have finite numbers (got {constant})")


class _Loader:
    """Puts one line after another into the tables of a store."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.configuration: stored.Configuration | None = None
        self.promised: int | None = None
        self.units = 0
        self.shared: dict[str, dict[str, Any]] = {kind: {} for kind in _SHARED}

    def start(self, row: dict[str, Any]) -> None:
        if next(iter(row)) != _FORMAT:
            raise InputError("the file has no records of ecg-gnn")
        if (version := row[_FORMAT]) != _VERSION:
            raise InputError(
                f"the format must be version {_VERSION} (got {version!r}, from another "
                "version of ecg-gnn)"
            )
        if _COUNT in row:
            self.promised = count = row[_COUNT]
            if type(count) is not int or count < 0:
                raise InputError(f"{_COUNT!r} must be a whole number (got {count!r})")

    def add(self, row: dict[str, Any]) -> None:
        kind, value = next(iter(row.items()))
        check_choice("a line", kind, (*_SHARED, "dataset", "configuration", "unit"))
        if kind in _SHARED:
            self.shared[kind][row["key"]] = value
        elif kind == "dataset":
            dataset = stored.checked(stored.DatasetInfo, value)
            insert(self.connection, "datasets", vars(dataset))
        elif kind == "configuration":
            self._add_configuration(stored.checked(stored.Configuration, value))
        elif isinstance(value, dict):
            self._add_unit(value)
        else:
            raise InputError(f"a unit must be a JSON object (got {value!r})")

    def _add_configuration(self, at: stored.Configuration) -> None:
        query = "SELECT 1 FROM datasets WHERE (name, sha256) = (?, ?)"
        names = at.dataset, at.dataset_sha256
        if not self.connection.execute(query, names).fetchone():
            raise InputError(f"the dataset {at.dataset!r} is not there")
        # Refuses what this version cannot read, and fills in what an older one lacked.
        config = RunConfig.from_dict(at.config).to_dict()
        self.configuration = replace(at, config=config)
        insert(self.connection, "configurations", vars(self.configuration))

    def _add_unit(self, value: dict[str, Any]) -> None:
        if (at := self.configuration) is None:
            raise InputError("a unit must follow its configuration")
        recipes, failure = value.pop("recipes"), value.pop("failure", None)
        made_with = {"provenance": self.shared["provenance"][value.pop("made_with")]}
        end = {"finished": value.pop("finished")}
        unit = {name: value.pop(name) for name in ("id", "split", "seed")}
        whole = unit | end | {"configuration": at}
        if failure:
            columns = vars(stored.checked(stored.Failed, failure)) | made_with
            stored.checked(stored.Failure, whole | columns)
        else:
            graphs = [self.shared["statistics"][key] for key in value.pop("evolved")]
            if curves := value.get("curves"):
                steps = self.shared["steps"][curves["steps"]]
                value["curves"] = Curves.from_text(steps, curves)
            value |= {"evolved_statistics": graphs, **made_with}
            result = stored.checked(stored.Result, value)
            stored.checked(stored.UnitRecord, whole | {"result": result})
            columns = vars(result)
        row = unit | {"configuration": at.id, "state": "failed" if failure else "done"}
        insert(self.connection, "units", row)
        row = columns | end | {"unit": unit["id"]}
        insert(self.connection, "failures" if failure else "records", row)
        self.units += 1
        for recipe in recipes:
            insert(self.connection, "members", {"recipe": recipe, "unit": unit["id"]})
