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
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ecg_gnn.study.store.rows import Curves, Failure, UnitRecord, places_of
from ecg_gnn.study.store.schema import TEXT_ENDING, insert, open_in_memory
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import write_text

if TYPE_CHECKING:
    from ecg_gnn.study.store.reader import Store

_FORMAT, _VERSION = "ecg_gnn_records", 1
_COUNT = "units"  # how many follow; older files do not say
_SHARED = ("provenance", "statistics", "steps")
_ROWS = ("dataset", "configuration", "unit")
_NUMBERS = ("val", "test", "best_step", "seconds", "peak_memory_mb")


def write_records(store: "Store", path: Path, *, curve_points: int = 25) -> int:
    """Write what a store knows about finished and failed units; returns how many.

    The same records give the same text, whatever the order in which they were made.
    Of every training curve as many points are kept; 0 keeps no curves.
    """
    check_in_range("curve_points", curve_points, 0, None)
    if path.suffix != TEXT_ENDING:
        raise InputError(f"'out' must end in {TEXT_ENDING!r} (got {str(path)!r})")
    # Not in the order in which processes happened to run them.
    units: list[UnitRecord | Failure] = [*store.records()]
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
        if isinstance(unit, Failure):
            made_with = unit.provenance
            row["failure"] = {"kind": unit.kind, "error": unit.error}
        else:
            result, made_with = unit.result, unit.result.provenance
            row |= {name: getattr(result, name) for name in _NUMBERS}
            row["evolved"] = [share("statistics", g) for g in result.evolved_statistics]
            curves = store.curves(unit.id) if curve_points else None
            if curves is not None and curves.losses.size:
                places = places_of([curves], curve_points)
                steps = share("steps", (places + 1).tolist())
                row["curves"] = {"steps": steps, **curves.to_text(places)}
        row["made_with"] = share("provenance", made_with)
        lines[_line({"unit": row | {"finished": unit.finished}})] = None
    write_text(path, "\n".join([*lines, ""]))
    return len(units)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _place(unit: UnitRecord | Failure) -> tuple[Any, ...]:
    at = unit.configuration
    where = at.dataset, at.dataset_sha256, at.task, at.backbone, at.model
    return *where, at.variant, at.embedding or "", at.numerics, at.id, unit.pair


def read_records(path: Path) -> sqlite3.Connection:
    """The lines of a file as a database in memory: all that reads a store reads it.

    Whether values are what they must be is checked when they are read from there.
    """
    if not path.is_file():
        raise InputError(f"'store' {str(path)!r} does not exist")
    connection, number, units = open_in_memory(), 1, 0
    shared: dict[str, Any] = {kind: {} for kind in _SHARED}
    try:
        with path.open(encoding="utf-8") as lines:
            promised = _promised(next(lines, "{}"))
            for number, line in enumerate(lines, 2):  # noqa: B007 - errors name it
                row = json.loads(line, parse_constant=_refuse_constant)
                kind, value = next(iter(row.items()))
                check_choice("a line", kind, (*_SHARED, *_ROWS))
                if kind in _SHARED:
                    shared[kind][row["key"]] = value
                elif kind == "unit":
                    _insert_unit(connection, shared, value)
                    units += 1
                else:
                    insert(connection, "INSERT", f"{kind}s", value)
                    shared[kind] = value
        if promised not in (None, units):
            raise InputError(
                f"must be {promised} units, as the first line says (got {units}): the "
                "file is not whole"
            )
    except Exception as error:
        connection.close()
        said = f"{error} is not there" if isinstance(error, KeyError) else error
        raise InputError(
            f"'store' {str(path)!r} cannot be read (line {number}: {said})"
        ) from None
    connection.execute("PRAGMA query_only = ON")
    return connection


def _promised(line: str) -> Any:
    """How many units follow, if the first line says so."""
    first = json.loads(line)
    if (version := first.get(_FORMAT)) != _VERSION:
        raise InputError(
            f"the first line must have {_FORMAT!r} {_VERSION} (got {version!r}: no "
            "records, or of another version of ecg-gnn)"
        )
    return first.get(_COUNT)


def _refuse_constant(constant: str) -> None:
    raise InputError(f"must have finite numbers (got {constant})")


def _insert_unit(
    connection: sqlite3.Connection, shared: Mapping[str, Any], value: dict[str, Any]
) -> None:
    """A unit, what became of it, and its recipes, each in its table."""
    recipes, failure = value.pop("recipes"), value.pop("failure", None)
    unit = {name: value.pop(name) for name in ("id", "split", "seed")}
    unit["configuration"] = shared["configuration"]["id"]
    unit["state"] = "failed" if failure else "done"
    insert(connection, "INSERT", "units", unit)
    value["unit"] = unit["id"]
    value["provenance"] = shared["provenance"][value.pop("made_with")]
    if failure:
        insert(connection, "INSERT", "failures", failure | value)
    else:
        graphs = [shared["statistics"][key] for key in value.pop("evolved")]
        if curves := value.get("curves"):
            steps = shared["steps"][curves["steps"]]
            value["curves"] = Curves.from_text(steps, curves)
        insert(connection, "INSERT", "records", value | {"evolved_statistics": graphs})
    for recipe in recipes:
        row = {"recipe": recipe, "unit": unit["id"]}
        insert(connection, "INSERT", "members", row)
