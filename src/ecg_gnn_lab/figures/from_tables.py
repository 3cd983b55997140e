"""Figures of tables: effects, homophily before and after, the leaderboard."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ecg_gnn.study.store import Store
from ecg_gnn.system.canvas import COLOURS, Paint, draw, in_lines
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures.curves import curves
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Row, starred
from ecg_gnn_lab.tables.leaderboard import boards

Groups = Sequence[Sequence[Row]]
_MARKERS = {"baseline": "o", "identity": "D"}
_MEASURES = {
    "edge_homophily": "edge homophily",
    "adjusted_homophily": "adjusted homophily",
    "label_informativeness": "label informativeness",
}
_RING = {"marker": "o", "color": "0.3", "ms": 8, "fillstyle": "none"}


def effects(tables: StudyTables) -> Paint | None:
    """The chosen ECG of every dataset and model minus its rivals, with intervals."""
    ecg = [row for row in tables["results"].rows if row["variant"] == "ecg"]
    rows = [row for row in ecg if _compared(row)]
    return (lambda kind: _effects(kind, _by_dataset(rows))) if rows else None


def homophily(tables: StudyTables) -> Paint | None:
    """Edge and adjusted homophily and label informativeness of G and G_ECG."""
    rows = tables["statistics"].rows
    evolved = {row["dataset"] for row in rows if row["embedding"] is not None}
    rows = [row for row in rows if row["dataset"] in evolved]
    return (lambda kind: _homophily(kind, _by_dataset(rows))) if rows else None


def leaderboard(tables: StudyTables) -> Paint | None:
    """Every model by its score, beside what has been published."""
    rows = tables["leaderboard"].rows
    groups = boards(row for row in rows if _mean(row) is not None)
    return (lambda kind: _leaderboard(kind, groups)) if groups else None


def _by_dataset(rows: Sequence[Row]) -> Groups:
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    return [[row for row in rows if row["dataset"] == name] for name in datasets]


def _compared(row: Row) -> list[str]:
    return [other for other in _MARKERS if row.get(f"minus_{other}") is not None]


def _stacked(
    kind: Any, groups: Groups, size: tuple[float, float], room: float, **options: Any
) -> tuple[Any, Any]:
    """A figure with a line of axes per group, as high as its rows and some room."""
    figure = kind(figsize=size, layout="constrained")
    heights = [len(group) + room for group in groups]
    axes = figure.subplots(len(groups), squeeze=False, height_ratios=heights, **options)
    return figure, axes


def _effects(kind: Any, groups: Groups) -> Any:
    size = (6.4, 1.0 + 0.45 * sum(map(len, groups)) + 0.4 * len(groups))
    figure, lines = _stacked(kind, groups, size, 0.6, sharex=True)
    axes = lines[:, 0]
    for each, group in zip(axes, groups, strict=True):
        _draw_effects(each, group)
    compared = {other for group in groups for row in group for other in _compared(row)}
    for other, marker in _MARKERS.items():
        if other in compared:
            look = {"color": COLOURS[other], "marker": marker}
            axes[0].plot([], [], lw=2, ms=5, label=f"ECG − {other}", **look)
    axes[-1].set_xlabel("paired difference in points, 95% interval")
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _draw_effects(axes: Any, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        for other in _compared(row):
            at = place + (-0.16 if other == "baseline" else 0.16)
            low, high = (row[f"minus_{other}_ci_{end}"] for end in ("low", "high"))
            look = {"color": COLOURS[other]}
            if low is not None:
                axes.plot([low, high], [at, at], lw=2, **look)
            axes.plot([row[f"minus_{other}"]], [at], _MARKERS[other], ms=5, **look)
    axes.axvline(0, color="0.5", lw=0.8, ls="--", zorder=0)
    names = [in_lines(f"{row['model']}, {row['label']}") for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(rows[0]["dataset"], loc="left")


def _homophily(kind: Any, groups: Groups) -> Any:
    names = [[_short_name(row) for row in group] for group in groups]
    wrapped = any("\n" in name for of_group in names for name in of_group)
    height = (0.31 if wrapped else 0.24) * sum(map(len, groups))
    size = (10.5, 0.8 + height + 0.55 * len(groups))
    shared = {"sharey": "row", "sharex": "col"}
    figure, axes = _stacked(kind, groups, size, 1, ncols=len(_MEASURES), **shared)
    for line, group, of_group in zip(axes, groups, names, strict=True):
        for each, key in zip(line, _MEASURES, strict=True):
            _draw_measure(each, group, key)
        line[0].set_yticks(range(len(group)), of_group, fontsize=8)
        line[0].set_ylim(len(group) - 0.4, -0.6)
        line[0].set_title(group[0]["dataset"], loc="left")
    for each, title in zip(axes[-1], _MEASURES.values(), strict=True):
        each.set_xlabel(title)
    return figure


def _short_name(row: Row) -> str:
    return in_lines(row["graph"].removeprefix("G_ECG (").removesuffix(")"), 48)


def _draw_measure(axes: Any, rows: Sequence[Row], key: str) -> None:
    """Dots for our graphs, rings for the paper's, a line where the input graph is."""
    start = next((row[key] for row in rows if row["embedding"] is None), None)
    if start is not None:
        axes.axvline(start, color="0.5", lw=0.8, ls="--", zorder=0)
    for place, row in enumerate(rows):
        colour = COLOURS["baseline" if row["embedding"] is None else "ecg"]
        if row[key] is not None:
            ends = [row[key] if start is None else start, row[key]]
            axes.plot(ends, [place, place], color=colour, lw=1.2, alpha=0.45)
            axes.plot([row[key]], [place], "o", color=colour, ms=5)
        if row[f"paper_{key}"] is not None:
            axes.plot([row[f"paper_{key}"]], [place], **_RING)


def _mean(row: Row) -> float | None:
    mean: float | None = row["test_mean"]
    return row["published_mean"] if mean is None else mean


def _leaderboard(kind: Any, groups: Groups) -> Any:
    height = 0.24 * sum(map(len, groups)) + 0.6 * len(groups)
    figure, axes = _stacked(kind, groups, (9, 0.4 + height), 1)
    for each, group in zip(axes[:, 0], groups, strict=True):
        _draw_board(each, group)
    axes[-1, 0].set_xlabel("score in percent")
    return figure


def _draw_board(axes: Any, rows: Sequence[Row]) -> None:
    """Dots with a deviation for ours, rings for published, a line at the best one."""
    for place, row in enumerate(rows):
        if row["kind"] == "published":
            axes.axvline(row["published_mean"], color="0.5", lw=0.8, ls="--", zorder=0)
        if row["published_mean"] is not None:
            axes.plot([row["published_mean"]], [place], **_RING)
        if (mean := row["test_mean"]) is not None:
            colour = COLOURS["ecg" if row["variant"] == "ecg" else "baseline"]
            ends = [mean - (row["test_std"] or 0), mean + (row["test_std"] or 0)]
            axes.plot(ends, [place, place], color=colour, lw=1.5)
            axes.plot([mean], [place], "o", color=colour, ms=5)
    # A few models far below must not squeeze all others: they are marked at the edge.
    means = [mean for mean in map(_mean, rows) if mean is not None]
    low, high = axes.get_xlim()
    low = max(low, high - 3 * (high - sorted(means)[len(means) // 2]))
    axes.set_xlim(low, high)
    for place, mean in enumerate(means):
        if mean < low:
            axes.text(low, place, "‹", va="center")
    names = [in_lines(starred(row, "model"), 60) for row in rows]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(rows[0]["dataset"], loc="left")


FIGURES: dict[str, tuple[Callable[[StudyTables], Paint | None], str]] = {
    "effects": (
        effects,
        "an effect plot needs an ECG variant beside a baseline or identity: the store "
        "has none that is finished",
    ),
    "curves": (curves, "the store has no training curves to draw"),
    "homophily": (
        homophily,
        "the store has no evolved graph whose homophily was measured",
    ),
}
"""What ``study figure`` draws from records alone, and the error where it cannot."""


def draw_figure(
    name: str,
    store: Store,
    path: Path,
    recipe: str | None = None,
    *,
    source: str | None = None,
) -> None:
    """Draw one of :data:`FIGURES` into a file that can say what it was drawn from."""
    figure, nothing = FIGURES[name]
    if (paint := figure(StudyTables(store, recipe))) is None:
        raise InputError(nothing)
    draw(path, paint, source)
