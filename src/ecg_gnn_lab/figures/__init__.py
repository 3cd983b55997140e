"""Figures of records: effects, homophily before and after, training curves."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ecg_gnn.config.identity import LABELS
from ecg_gnn.system import canvas
from ecg_gnn.system.canvas import DASHES, RING, Paint, in_lines, look
from ecg_gnn.system.checks import InputError
from ecg_gnn_lab.figures.training_curves import curves
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Row
from ecg_gnn_lab.tables.scores import compared_with, surely

Groups = Sequence[Sequence[Row]]
_MEASURES = ("edge_homophily", "adjusted_homophily", "label_informativeness")


def effects(tables: StudyTables) -> Paint | None:
    """The chosen ECG of every dataset and model minus its rivals, with intervals."""
    ecg = [row for row in tables["results"].rows if row["variant"] == "ecg"]
    rows = [row for row in ecg if compared_with([row])]
    return (lambda kind: _effects(kind, rows)) if rows else None


def homophily(tables: StudyTables) -> Paint | None:
    """Edge and adjusted homophily and label informativeness of G and G_ECG.

    One graph for each embedding, k and use of self-loops: the table has all.
    """
    rows: dict[tuple[str, str], Row] = {}
    for row in tables["statistics"].rows:
        rows.setdefault((row["dataset"], _short_name(row)), row)
    groups = [group for group in _by_dataset([*rows.values()]) if len(group) > 1]
    return (lambda kind: _homophily(kind, groups)) if groups else None


def _by_dataset(rows: Sequence[Row]) -> Groups:
    datasets = dict.fromkeys(row["dataset"] for row in rows)
    return [[row for row in rows if row["dataset"] == name] for name in datasets]


def _stacked(
    kind: Any, groups: Groups, names: Callable[[Row], str], columns: int
) -> tuple[Any, Any]:
    """A figure with a line of axes per dataset, a row of each per name."""
    lines = max(names(row).count("\n") + 1 for group in groups for row in group)
    heights = [0.17 * lines * len(group) + 0.2 for group in groups]
    height = 1.8 + sum(heights) + 0.25 * len(groups)
    # In inches: wider, and a phone would show letters too small.
    figure = kind(figsize=(5.4, height), layout="constrained")
    options = {"squeeze": False, "sharex": "col", "sharey": "row"}
    grid = figure.subplots(len(groups), columns, height_ratios=heights, **options)
    for line, group in zip(grid, groups, strict=True):
        line[0].set_yticks(range(len(group)), [names(row) for row in group])
        line[0].set_ylim(len(group) - 0.5, -0.5)
        line[0].set_title(group[0]["dataset"])
    return figure, grid


def _legend(figure: Any, axes: Any, marks: dict[str, dict[str, Any]]) -> None:
    for name, style in marks.items():
        axes.plot([], [], label=name, **style)
    figure.legend(loc="outside lower center", ncols=len(marks))


def _effects(kind: Any, rows: Sequence[Row]) -> Any:
    groups, shown = _by_dataset(rows), compared_with(rows)
    figure, grid = _stacked(kind, groups, _effect_name, 1)
    for axes, group in zip(grid[:, 0], groups, strict=True):
        for place, row in enumerate(group):
            others = compared_with([row])
            for line, other in enumerate(others):
                at = place + 0.3 * (line - (len(others) - 1) / 2)
                key, style = f"minus_{other}", look(other)
                ends = [row[f"{key}_ci_low"], row[f"{key}_ci_high"]]
                axes.plot(ends, [at, at], lw=2, color=style["color"])
                axes.plot([row[key]], [at], **style)
        axes.axvline(0, zorder=0, **DASHES)
    _legend(figure, axes, {f"− {other}": {"lw": 2, **look(other)} for other in shown})
    axes.set_xlabel("paired difference in points, 95% interval")
    signs = {o: [surely(r, o) for r in rows if o in compared_with([r])] for o in shown}
    said = [f"above {o} in {each.count(1)} of {len(each)}" for o, each in signs.items()]
    figure.suptitle("ECG is " + ",\n".join(said))
    return figure


def _effect_name(row: Row) -> str:
    # That labels are input is in the model's name: once is enough.
    return in_lines(f"{row['model']}, {row['label'].removesuffix(f' + {LABELS}')}", 34)


def _homophily(kind: Any, groups: Groups) -> Any:
    """Marks for our graphs, rings for the paper's, a line where the input graph is."""
    figure, grid = _stacked(kind, groups, _short_name, len(_MEASURES))
    marks = {"input graph": look("baseline"), "evolved": look("ecg")}
    for line, rows in zip(grid, groups, strict=True):
        for axes, name in zip(line, _MEASURES, strict=True):
            start = rows[0][name]
            for place, row in enumerate(rows):
                style = marks["evolved" if place else "input graph"]
                thin = {"color": style["color"], "lw": 1.2, "alpha": 0.45}
                axes.plot([start, row[name]], [place, place], **thin)
                axes.plot([row[name]], [place], **style)
                axes.plot([row[f"paper_{name}"]], [place], **RING)
            axes.axvline(start or 0, zorder=0, **DASHES)
            axes.locator_params(axis="x", nbins=2)
    for axes, name in zip(grid[-1], _MEASURES, strict=True):
        axes.set_xlabel(name.replace("_", "\n"))
    rings = any(row[f"paper_{n}"] for rows in groups for row in rows for n in _MEASURES)
    marks |= {"in the paper": RING} if rings else {}
    _legend(figure, axes, {name: {"ls": "", **style} for name, style in marks.items()})
    value = "edge_homophily"
    pairs = [(row[value], rows[0][value]) for rows in groups for row in rows[1:]]
    gains = [ours > before for ours, before in pairs if None not in (ours, before)]
    figure.suptitle(
        f"{sum(gains)} of {len(gains)} evolved graphs are\n"
        "more homophilous than the input graph"
    )
    return figure


def _short_name(row: Row) -> str:
    if row["embedding"] is None:
        return "input graph"
    source = row["graph"].removeprefix("G_ECG (").partition(", k = ")[0]
    loops = "" if row["self_loops"] == "exclude" else ", self-loops"
    return in_lines(f"{source}, k = {row['k']}{loops}", 24)


FIGURES = {"effects": effects, "curves": curves, "homophily": homophily}
"""What ``study figure`` draws from records alone; None where they have no such."""


def draw_figure(
    name: str, tables: StudyTables, path: Path, source: str | None = None
) -> None:
    """Draw one of :data:`FIGURES` into a file that can say what it was drawn from."""
    if (paint := FIGURES[name](tables)) is None:
        raise InputError(f"the store has no finished records for the figure {name!r}")
    canvas.draw(path, paint, source)
