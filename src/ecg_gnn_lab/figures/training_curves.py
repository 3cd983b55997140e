"""Training curves of every model: plain, with its best evolved graph, with identity."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.study.selection import Cell, best_ecg
from ecg_gnn.study.store import Store
from ecg_gnn.study.store.rows import places_of
from ecg_gnn.system.canvas import Paint, in_lines, look
from ecg_gnn_lab.tables import StudyTables

_MOST_POINTS = 250  # of a line: a panel is hardly wider
_RUSH = 0.08  # of the steps come first, and would squeeze all that follows

Band = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]
"""Steps, counted from 1; means over trainings; deviations, of a single one zero"""
Panel = list[tuple[Cell, Band]]


def curves(source: StudyTables) -> Paint | None:
    """Test score at every step: mean over splits, one standard deviation around it.

    Only models that have an evolved graph, if there are any: the others are many, and
    their last scores are enough to compare them.
    """
    panels: list[Panel] = []
    models = source.selection.models()
    for cells in list(filter(best_ecg, models)) or models:
        best = best_ecg(cells) or cells[0]
        rivals = [source.selection.rival(best, o) for o in ("baseline", "identity")]
        shown = dict.fromkeys(cell.key for cell in (best, *rivals) if cell)
        bands = [(c, score_band(source.store, c)) for c in cells if c.key in shown]
        if panel := [(cell, band) for cell, band in bands if band is not None]:
            panels.append(panel)
    return (lambda kind: _figure(kind, panels)) if panels else None


def _figure(kind: Any, panels: Sequence[Panel]) -> Any:
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = kind(figsize=(2.7 * columns, 0.8 + 3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for each, panel in zip(axes, panels, strict=False):
        _draw_panel(each, panel)
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    figure.suptitle("Test score while training")
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    for cell, (steps, mean, spread) in panel:
        style, late = look(cell.key.variant), steps >= _RUSH * steps[-1]
        x, y, around = steps[late], 100 * mean[late], 100 * spread[late]
        name, every = in_lines(cell.label, 24), max(1, len(x) // 5)
        axes.plot(x, y, lw=1.2, label=name, markevery=every, **style)
        axes.fill_between(x, y - around, y + around, alpha=0.15, color=style["color"])
    key = panel[0][0].key
    title = in_lines(f"{key.graph_label} · {key.model_label}", 22)
    axes.set(title=title, xlabel="step", ylabel="test score (%)")
    # Below the panel, off the lines.
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.2))


def score_band(store: Store, cell: Cell) -> Band | None:
    """Test scores of a cell's chosen configuration; None where no curves were kept."""
    stored = [store.curves(record.id) for record in cell.chosen.records]
    kept = [curves for curves in stored if curves is not None and curves.losses.size]
    if not kept:
        return None
    places = places_of(kept, _MOST_POINTS)
    scores = np.full((len(kept), places[-1] + 1), np.nan)
    for row, curves in zip(scores, kept, strict=True):
        row[: curves.test_scores.size] = curves.test_scores[: row.size]
    found = np.ma.masked_invalid(scores[:, places])
    # Where one training alone is left, it is a line without a band.
    mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
    return places + 1, mean.filled(np.nan), spread.filled(0.0)
