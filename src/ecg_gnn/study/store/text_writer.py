"""A store as lines of text: small, read in a diff, kept by git for years.

One JSON object per line. The first names the format and says how many units there are,
so that a file cut short is noticed; then come the graphs, then the configurations, each
followed by its finished and failed units. What many units share stands once, before its
first use, under a key made from its content:

    {"ecg_gnn_records": 1, "units": 150}
    {"dataset": {"name": "minesweeper", "sha256": "e664…", …}}
    {"configuration": {"id": "9d20635a0f376bf0", "variant": "baseline", …}}
    {"provenance": {"commit": "5c3e8c2b1d00", "device_name": …}, "key": "7c9e21d0"}
    {"steps": [1, 43, …, 1000], "key": "05b1ee47"}
    {"unit": {"id": …, "split": 0, "test": 0.8975, …, "made_with": "7c9e21d0"}}
    {"unit": {"id": …, "split": 1, "failure": {"kind": "error", …}, …}}

Every number is exact but those of training curves, which are thinned and rounded.
Claims stay behind: what is running or missing is no record.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.study.store.curves import Curve, Curves, known_steps, thinned
from ecg_gnn.study.store.reader import Store
from ecg_gnn.study.store.rows import Configuration, Failure, UnitRecord
from ecg_gnn.study.store.schema import TEXT_ENDING
from ecg_gnn.study.store.text_reader import COUNT, FORMAT, SERIES, VERSION
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.files import write_text


def write_records(store: Store, path: Path, *, curve_points: int = 25) -> int:
    """Write what a store has finished and failed, in an order of its own.

    Args:
        store: What to write.
        path: The file, which is either whole or not there.
        curve_points: Steps to keep of every training curve; 0 keeps no curves.

    Returns:
        How many units were written.
    """
    check_in_range("curve_points", curve_points, 0, None)
    if path.suffix != TEXT_ENDING:
        raise InputError(f"'out' must end in {TEXT_ENDING!r} (got {str(path)!r})")
    units = _by_configuration([*store.records(), *store.failures()])
    count = sum(map(len, units))
    lines = _Lines()
    lines.add({FORMAT: VERSION, COUNT: count})
    for dataset in sorted(store.datasets(), key=lambda each: (each.name, each.sha256)):
        lines.add({"dataset": asdict(dataset)})
    recipes = store.recipes_of_units()
    for found in units:
        lines.add({"configuration": asdict(found[0].configuration)})
        for unit in sorted(found, key=lambda each: (each.split, each.seed)):
            row = {"id": unit.id, "split": unit.split, "seed": unit.seed}
            row |= {"recipes": recipes[unit.id]}
            if isinstance(unit, Failure):
                row |= {"failure": {"kind": unit.kind, "error": unit.error}}
                made_with = unit.provenance
            else:
                row |= _result(unit, lines)
                if curve_points:
                    row |= _curves(store.curves(unit.id), curve_points, lines)
                made_with = unit.result.provenance
            row |= {"made_with": lines.share("provenance", dict(made_with))}
            lines.add({"unit": row | {"finished": unit.finished}})
    write_text(path, "\n".join([*lines.written, ""]))
    return count


class _Lines:
    """Lines to write; what is shared is written once."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._shared: set[str] = set()

    def add(self, row: Mapping[str, Any]) -> None:
        self.written.append(_line(row))

    def share(self, kind: str, value: Any) -> str:
        """The key of a value, which stands in a line of its own."""
        key = hashlib.sha256(_line({kind: value}).encode()).hexdigest()[:8]
        if key not in self._shared:
            self._shared.add(key)
            self.add({kind: value, "key": key})
        return key


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _by_configuration(
    units: Iterable[UnitRecord | Failure],
) -> list[list[UnitRecord | Failure]]:
    """Units in groups whose order does not depend on who ran what when."""
    groups: dict[str, list[UnitRecord | Failure]] = {}
    for unit in units:
        groups.setdefault(unit.configuration.id, []).append(unit)
    return sorted(groups.values(), key=lambda found: _place(found[0].configuration))


def _place(at: Configuration) -> tuple[str | int, ...]:
    where = at.dataset, at.dataset_sha256, at.task, at.backbone, at.model
    return *where, at.variant, at.embedding or "", at.numerics, at.id


def _result(unit: UnitRecord, lines: _Lines) -> dict[str, Any]:
    result = unit.result
    return {
        "val": result.val,
        "test": result.test,
        "best_step": result.best_step,
        "seconds": result.seconds,
        "peak_memory_mb": result.peak_memory_mb,
        "evolved": [
            lines.share("statistics", row) for row in result.evolved_statistics
        ],
    }


def _curves(curves: Curves | None, points: int, lines: _Lines) -> dict[str, Any]:
    """A curve at some steps, as whole numbers, each as the change from the last."""
    if curves is None or not curves.losses.size:
        return {}
    steps = thinned(known_steps([curves]), points)
    row: dict[str, Any] = {"steps": lines.share("steps", (steps + 1).tolist())}
    for name, (field, units) in SERIES.items():
        row[name] = _changes(getattr(curves, field)[steps], units)
    return {"curves": row}


def _changes(values: Curve, units: float) -> list[int | None]:
    changes: list[int | None] = []
    before = 0
    for value in values.tolist():
        if not np.isfinite(value):
            changes.append(None)
            continue
        now = round(value * units)
        changes.append(now - before)
        before = now
    return changes
