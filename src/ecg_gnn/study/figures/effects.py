"""ECG minus baseline and ECG minus identity, with intervals."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecg_gnn.study.figures.canvas import COLOURS, draw, in_lines
from ecg_gnn.study.paper_tables import make_table
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError

_MARKERS = {"baseline": "o", "identity": "D"}


def draw_effects(
    store: Store, path: Path, recipe: str | None = None, *, source: str | None = None
) -> None:
    """The chosen ECG of every dataset and model against its two rivals."""
    rows = [
        row
        for row in make_table("results", store, recipe).rows
        if row["variant"] == "ecg" and _has_any(row)
    ]
    if not rows:
        raise InputError(
            "an effect plot needs an ECG variant beside a baseline or identity: the "
            "store has none that is finished"
        )
    draw(path, lambda kind: _figure(kind, rows), source)


def _has_any(row: Row) -> bool:
    return any(row[f"minus_{other}"] is not None for other in _MARKERS)


def _figure(kind: Any, rows: Sequence[Row]) -> Any:
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    groups = [[row for row in rows if row["dataset"] == name] for name in datasets]
    figure = kind(
        figsize=(6.4, 1.0 + 0.45 * len(rows) + 0.4 * len(groups)),
        layout="constrained",
    )
    heights = [len(group) + 0.6 for group in groups]
    axes = figure.subplots(
        len(groups), 1, sharex=True, squeeze=False, height_ratios=heights
    )[:, 0]
    for each, group in zip(axes, groups, strict=True):
        _draw_group(each, group)
    compared = [o for o in _MARKERS if any(r[f"minus_{o}"] is not None for r in rows)]
    for other in compared:
        marker = _MARKERS[other]
        look = {"color": COLOURS[other], "marker": marker, "label": f"ECG − {other}"}
        axes[0].plot([], [], lw=2, ms=5, **look)
    axes[-1].set_xlabel("paired difference in points, 95% interval")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _draw_group(axes: Any, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        for shift, (other, marker) in zip((-0.16, 0.16), _MARKERS.items(), strict=True):
            mean = row[f"minus_{other}"]
            if mean is None:
                continue
            at, colour = place + shift, COLOURS[other]
            low, high = (row[f"minus_{other}_ci_{end}"] for end in ("low", "high"))
            if low is not None:
                axes.plot([low, high], [at, at], color=colour, lw=2)
            axes.plot([mean], [at], color=colour, marker=marker, ms=5)
    axes.axvline(0, color="0.5", lw=0.8, ls="--", zorder=0)
    names = [in_lines(f"{row['model']}, {row['label']}") for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(rows[0]["dataset"], loc="left")
