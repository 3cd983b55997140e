"""Homophily of every graph before and after evolution."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ecg_gnn.study.figures.canvas import COLOURS, draw, in_lines
from ecg_gnn.study.paper_tables import make_table
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.store import Store
from ecg_gnn.system.checks import InputError

_MEASURES = {
    "edge_homophily": "edge homophily",
    "adjusted_homophily": "adjusted homophily",
    "label_informativeness": "label informativeness",
}


def draw_homophily(
    store: Store, path: Path, recipe: str | None = None, *, source: str | None = None
) -> None:
    """Edge and adjusted homophily and label informativeness of G and G_ECG."""
    rows = make_table("statistics", store, recipe).rows
    evolved = {row["dataset"] for row in rows if row["embedding"] is not None}
    rows = [row for row in rows if row["dataset"] in evolved]
    if not rows:
        raise InputError("the store has no evolved graph whose homophily was measured")
    draw(path, lambda kind: _figure(kind, rows), source)


def _figure(kind: Any, rows: Sequence[Row]) -> Any:
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    groups = [[row for row in rows if row["dataset"] == name] for name in datasets]
    names = [[in_lines(_name(row), 48) for row in group] for group in groups]
    wrapped = any("\n" in name for of_group in names for name in of_group)
    height = (0.31 if wrapped else 0.24) * len(rows)
    figure = kind(
        figsize=(10.5, 0.8 + height + 0.55 * len(groups)), layout="constrained"
    )
    axes = figure.subplots(
        len(groups),
        len(_MEASURES),
        sharey="row",
        sharex="col",
        squeeze=False,
        height_ratios=[len(group) + 1 for group in groups],
    )
    for line, group, of_group in zip(axes, groups, names, strict=True):
        for each, key in zip(line, _MEASURES, strict=True):
            _draw_measure(each, group, key)
        line[0].set_yticks(range(len(group)), of_group, fontsize=8)
        line[0].set_ylim(len(group) - 0.4, -0.6)
        line[0].set_title(group[0]["dataset"], loc="left")
    for each, title in zip(axes[-1], _MEASURES.values(), strict=True):
        each.set_xlabel(title)
    return figure


def _name(row: Row) -> str:
    graph = str(row["graph"])
    return graph.removeprefix("G_ECG (").removesuffix(")") if graph != "G" else graph


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
            ring = {"color": "0.3", "ms": 8, "fillstyle": "none"}
            axes.plot([row[f"paper_{key}"]], [place], "o", **ring)
