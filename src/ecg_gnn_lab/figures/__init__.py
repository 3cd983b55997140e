"""Figures of tables: effects, homophily before and after, the leaderboard."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ecg_gnn.config.identity import LABELS
from ecg_gnn.study.store import Store
from ecg_gnn.system import canvas
from ecg_gnn.system.canvas import DASHES, RING, Paint, in_lines, look
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures.training_curves import curves
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Row, starred
from ecg_gnn_lab.tables.ranking import boards
from ecg_gnn_lab.tables.scores import compared_with, surely

Groups = Sequence[Sequence[Row]]
_MEASURES = {
    "edge_homophily": "edge homophily",
    "adjusted_homophily": "adjusted homophily",
    "label_informativeness": "label informativeness",
}
_EVOLVED = look("ecg")
_GIVEN = look("baseline")


def effects(tables: StudyTables) -> Paint | None:
    """The chosen ECG of every dataset and model minus its rivals, with intervals."""
    ecg = [row for row in tables["results"].rows if row["variant"] == "ecg"]
    rows = [row for row in ecg if compared_with([row])]
    return (lambda kind: _effects(kind, _by_dataset(rows))) if rows else None


def homophily(tables: StudyTables) -> Paint | None:
    """Edge and adjusted homophily and label informativeness of G and G_ECG.

    One graph for each embedding, k and use of self-loops: the table has all.
    """
    rows: dict[tuple[str, str], Row] = {}
    for row in tables["statistics"].rows:
        rows.setdefault((row["dataset"], _short_name(row)), row)
    groups = [group for group in _by_dataset([*rows.values()]) if len(group) > 1]
    return (lambda kind: _homophily(kind, groups)) if groups else None


def leaderboard(tables: StudyTables) -> Paint | None:
    """Every model by its score, beside what has been published."""
    rows = tables["leaderboard"].rows
    groups = boards(row for row in rows if _mean(row) is not None)
    return (lambda kind: _leaderboard(kind, groups)) if groups else None


def _by_dataset(rows: Sequence[Row]) -> Groups:
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    return [[row for row in rows if row["dataset"] == name] for name in datasets]


def _stacked(
    kind: Any, groups: Groups, size: tuple[float, float], room: float, **options: Any
) -> tuple[Any, Any]:
    """A figure with a line of axes per group, as high as its rows and some room."""
    figure = kind(figsize=size, layout="constrained")
    heights = [len(group) + room for group in groups]
    axes = figure.subplots(len(groups), squeeze=False, height_ratios=heights, **options)
    return figure, axes


def _effects(kind: Any, groups: Groups) -> Any:
    rows = [row for group in groups for row in group]
    size = (6.4, 1.5 + 0.45 * len(rows) + 0.4 * len(groups))
    figure, lines = _stacked(kind, groups, size, 0.6, sharex=True)
    axes = lines[:, 0]
    for each, group in zip(axes, groups, strict=True):
        _draw_effects(each, group)
    shown = compared_with(rows)
    canvas.key(
        axes[0], {f"− {other}": {"lw": 2, "ls": "-", **look(other)} for other in shown}
    )
    axes[-1].set_xlabel("paired difference in points, 95% interval")
    said = []
    for other in shown:
        signs = [surely(row, other) for row in rows if other in compared_with([row])]
        said.append(f"above {other} in {signs.count(1)} of {len(signs)}")
    figure.suptitle("ECG is " + ",\n".join(said))
    return figure


def _draw_effects(axes: Any, rows: Sequence[Row]) -> None:
    for place, row in enumerate(rows):
        others = compared_with([row])
        for line, other in enumerate(others):
            at = place + 0.3 * (line - (len(others) - 1) / 2)
            low, high = (row[f"minus_{other}_ci_{end}"] for end in ("low", "high"))
            if low is not None:
                axes.plot([low, high], [at, at], lw=2, color=canvas.COLOURS[other])
            axes.plot([row[f"minus_{other}"]], [at], **look(other))
    axes.axvline(0, zorder=0, **DASHES)
    # That labels are input is in the model's name: once is enough.
    labels = [row["label"].removesuffix(f" + {LABELS}") for row in rows]
    names = [f"{r['model']}, {name}" for r, name in zip(rows, labels, strict=True)]
    _name_rows(axes, rows, [in_lines(name) for name in names])


def _name_rows(axes: Any, rows: Sequence[Row], names: Sequence[str]) -> None:
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(rows[0]["dataset"])


def _homophily(kind: Any, groups: Groups) -> Any:
    size = (7.5, 1.6 + 0.24 * sum(map(len, groups)) + 0.55 * len(groups))
    shared = {"sharey": "row", "sharex": "col"}
    figure, axes = _stacked(kind, groups, size, 1, ncols=len(_MEASURES), **shared)
    for line, group in zip(axes, groups, strict=True):
        for each, name in zip(line, _MEASURES, strict=True):
            _draw_measure(each, group, name)
        line[0].set_yticks(range(len(group)), map(_short_name, group), fontsize=9)
        line[0].set_ylim(len(group) - 0.4, -0.6)
        line[0].set_title(group[0]["dataset"])
    for each, title in zip(axes[-1], _MEASURES.values(), strict=True):
        each.set_xlabel(title)
    rows = [row for group in groups for row in group]
    marks = {"input graph": _GIVEN, "evolved": _EVOLVED}
    if any(row[f"paper_{name}"] is not None for row in rows for name in _MEASURES):
        marks["in the paper"] = RING
    dots = {name: {"ls": "", **style} for name, style in marks.items()}
    handles = [axes[0, 0].plot([], [], label=n, **dot)[0] for n, dot in dots.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(marks))
    value = "edge_homophily"
    gained = [
        (row[value] or 0.0) - (group[0][value] or 0.0)
        for group in groups
        for row in group[1:]
    ]
    figure.suptitle(
        f"{sum(gain > 0 for gain in gained)} of {len(gained)} evolved graphs are more "
        "homophilous\nthan the input graph"
    )
    return figure


def _short_name(row: Row) -> str:
    if row["embedding"] is None:
        return "input graph"
    source = row["graph"].removeprefix("G_ECG (").partition(", k = ")[0]
    loops = "" if row["self_loops"] == "exclude" else ", self-loops"
    return f"{source}, k = {row['k']}{loops}"


def _draw_measure(axes: Any, rows: Sequence[Row], name: str) -> None:
    """Marks for our graphs, rings for the paper's, a line where the input graph is."""
    start = next((row[name] for row in rows if row["embedding"] is None), None)
    if start is not None:
        axes.axvline(start, zorder=0, **DASHES)
    for place, row in enumerate(rows):
        style = _GIVEN if row["embedding"] is None else _EVOLVED
        if row[name] is not None:
            ends = [row[name] if start is None else start, row[name]]
            axes.plot(ends, [place, place], color=style["color"], lw=1.2, alpha=0.45)
            axes.plot([row[name]], [place], **style)
        if row[f"paper_{name}"] is not None:
            axes.plot([row[f"paper_{name}"]], [place], **RING)


def _mean(row: Row) -> float | None:
    mean: float | None = row["test_mean"]
    return row["published_mean"] if mean is None else mean


def _leaderboard(kind: Any, groups: Groups) -> Any:
    height = 0.24 * sum(map(len, groups)) + 0.6 * len(groups)
    figure, axes = _stacked(kind, groups, (9, 0.4 + height), 1)
    for each, group in zip(axes[:, 0], groups, strict=True):
        _draw_board(each, group)
    axes[-1, 0].set_xlabel("score in percent")
    best = {"marker": "", **DASHES, "ls": "--"}
    marks = {"plain": _GIVEN, "ECG": _EVOLVED, "published": RING, "the best": best}
    canvas.key(axes[0, 0], marks)
    figure.suptitle("Every model beside the best published")
    return figure


def _draw_board(axes: Any, rows: Sequence[Row]) -> None:
    """Marks with a deviation for ours, rings for published, a line at the best one."""
    for place, row in enumerate(rows):
        if row["kind"] == "published":
            axes.axvline(row["published_mean"], zorder=0, **DASHES)
        if row["published_mean"] is not None:
            axes.plot([row["published_mean"]], [place], **RING)
        if (mean := row["test_mean"]) is not None:
            style = _EVOLVED if row["variant"] == "ecg" else _GIVEN
            ends = [mean - (row["test_std"] or 0), mean + (row["test_std"] or 0)]
            axes.plot(ends, [place, place], color=style["color"], lw=1.5)
            axes.plot([mean], [place], **style)
    # A few models far below must not squeeze all others: they are marked at the edge.
    means = [mean for mean in map(_mean, rows) if mean is not None]
    low, high = axes.get_xlim()
    low = max(low, high - 3 * (high - sorted(means)[len(means) // 2]))
    axes.set_xlim(low, high)
    for place, mean in enumerate(means):
        if mean < low:
            axes.text(low, place, "‹", va="center")
    _name_rows(axes, rows, [in_lines(starred(row, "model"), 60) for row in rows])


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
    canvas.draw(path, paint, source)
