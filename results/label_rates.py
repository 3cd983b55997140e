"""Test scores where few nodes have a known label: ECG beside its rivals."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from quoting import tables

from ecg_gnn.study import Store
from ecg_gnn.system import canvas
from ecg_gnn_lab.tables.document import Row
from ecg_gnn_lab.tables.scores import compared_with, surely

Panel = list[Row]
"""A graph, share of labels and model: a row per variant"""


def draw_label_rates(path: Path, source: str, records: Path) -> None:
    """A panel for every graph, share of labels and model, a line per variant."""
    with Store.open(records) as store:
        panels = panels_of(tables(store)["results"].rows)

    def paint(kind: Any) -> Any:
        heights = [len(panel) + 1 for panel in panels]
        size = 5.4, 1.2 + 0.3 * sum(heights)
        figure = kind(figsize=size, layout="constrained")
        options = {"squeeze": False, "height_ratios": heights}
        grid = figure.subplots(len(panels), 1, **options)[:, 0]
        for axes, panel in zip(grid, panels, strict=True):
            _draw_panel(axes, panel)
        grid[-1].set_xlabel("test score (%), with one standard deviation over splits")
        figure.suptitle(title_of(panels))
        return figure

    canvas.draw(path, paint, source=source)


def panels_of(rows: Sequence[Row]) -> list[Panel]:
    """Rows of one graph and model, where there is something to compare."""
    groups = groupby(rows, key=itemgetter("dataset", "model"))
    panels = [list(group) for _, group in groups]
    return [panel for panel in panels if len(panel) > 1]


def title_of(panels: Sequence[Panel]) -> str:
    """The one thing to see: how often ECG is above all that it was compared with."""
    ecg = [row for panel in panels for row in panel if row["variant"] == "ecg"]
    above = [all(surely(row, o) > 0 for o in compared_with([row])) for row in ecg]
    return f"ECG is above all its rivals\nin {sum(above)} of {len(above)} comparisons"


def _draw_panel(axes: Any, panel: Panel) -> None:
    most = max(row["units"] for row in panel)
    names = []
    for place, row in enumerate(panel):
        fewer = f", {row['units']} of {most} splits" if row["units"] < most else ""
        names.append(row["label"] + fewer)
        spread = [row["test_std"] or 0.0]
        style = canvas.look(row["variant"])
        axes.errorbar([row["test_mean"]], [place], xerr=spread, **style)
    axes.set_yticks(range(len(panel)), names)
    axes.set_ylim(len(panel) - 0.5, -0.5)
    axes.set_title(f"{panel[0]['dataset']}: {panel[0]['model']}")
