"""Training curves of every model: plain, with its best evolved graph, with identity."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.study.selection import Cell, best_ecg
from ecg_gnn.study.store import Store
from ecg_gnn.study.store.curves import known_steps, thinned
from ecg_gnn.system.canvas import Paint, in_lines, look
from ecg_gnn_lab.tables import StudyTables

_MOST_POINTS = 250  # of a line: a panel is hardly wider


class Band(NamedTuple):
    """Means over trainings, with the sample standard deviation around them.

    NaN where no training has a number; the spread of a single training is zero.
    """

    steps: NDArray[np.int64]
    """Counted from 1"""
    mean: NDArray[np.float64]
    spread: NDArray[np.float64]


Panel = list[tuple[Cell, Band]]


def curves(source: StudyTables) -> Paint | None:
    """Test score at every step: mean over splits, one standard deviation around it.

    Only models that have an evolved graph on some dataset, if there are any: the
    others are many, and their last scores are enough to compare them.
    """
    models, rivals = source.selection.models(), ("baseline", "identity")
    evolved = {cells[0].key.model_label for cells in models if best_ecg(cells)}
    panels: list[Panel] = []
    for cells in models:
        if evolved and cells[0].key.model_label not in evolved:
            continue
        shown: list[Cell | None] = [c for c in cells if c.key.variant in rivals]
        if (best := best_ecg(cells)) is not None:
            shown = [source.selection.rival(best, other) for other in rivals]
            shown.insert(1, best)
        bands = [(cell, score_band(source.store, cell)) for cell in shown if cell]
        panels.append([(cell, band) for cell, band in bands if band is not None])
    panels = [panel for panel in panels if panel]
    # A lone line compares nothing, unless there is nothing else.
    panels = [panel for panel in panels if len(panel) > 1] or panels
    return (lambda kind: _figure(kind, panels)) if panels else None


def _figure(kind: Any, panels: Sequence[Panel]) -> Any:
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = kind(figsize=(0.6 + 3.2 * columns, 0.8 + 3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for each, panel in zip(axes, panels, strict=False):
        _draw_panel(each, panel)
    for unused in axes[len(panels) :]:
        unused.set_visible(False)
    ends = [{cell.key.variant: b.mean[-1] for cell, b in panel} for panel in panels]
    ahead = [e["ecg"] > e["identity"] for e in ends if {"ecg", "identity"} <= e.keys()]
    count = f"ECG ends above identity in {sum(ahead)} of {len(ahead)}:\n"
    figure.suptitle((count if ahead else "") + "test score while training")
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    for cell, band in panel:
        style, mean = look(cell.key.variant), 100 * band.mean
        low, high = mean - 100 * band.spread, mean + 100 * band.spread
        name, every = in_lines(cell.label, 40), max(1, len(mean) // 5)
        axes.plot(band.steps, mean, lw=1.2, label=name, markevery=every, **style)
        axes.fill_between(band.steps, low, high, alpha=0.15, lw=0, color=style["color"])
    axes.set_ylim(_window([band for _, band in panel]))
    key = panel[0][0].key
    axes.set_title(in_lines(f"{key.graph_label} · {key.model_label}", 32))
    axes.set_xlabel("step")
    axes.set_ylabel("test score (%)")
    # Below the panel, off the lines.
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.2), fontsize=9)


def _window(bands: Sequence[Band]) -> tuple[float, float]:
    """Ends of the axis: for what comes after the scores' first rush."""
    ends = np.concatenate(
        [
            100 * side[band.steps >= 0.08 * band.steps[-1]]
            for band in bands
            for side in (band.mean - band.spread, band.mean + band.spread)
        ]
    )
    ends = ends[np.isfinite(ends)]
    low, high = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 100.0)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def score_band(store: Store, cell: Cell) -> Band | None:
    """Test scores of a cell's chosen configuration; None where no curves were kept."""
    stored = [store.curves(record.id) for record in cell.chosen.records]
    kept = [curves for curves in stored if curves is not None and curves.losses.size]
    if not kept:
        return None
    places = thinned(known_steps(kept), _MOST_POINTS)
    scores = np.full((len(kept), places[-1] + 1), np.nan)
    for row, curves in zip(scores, kept, strict=True):
        row[: curves.test_scores.size] = curves.test_scores[: row.size]
    scores[~np.isfinite(scores)] = np.nan
    scores = scores[:, places]
    with warnings.catch_warnings():
        # A step at which every training had diverged has no mean; NaN says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        mean, spread = np.nanmean(scores, axis=0), np.nanstd(scores, axis=0, ddof=1)
    # Where one training alone is left, it is a line without a band.
    spread = np.where(np.isnan(spread) & ~np.isnan(mean), 0.0, spread)
    return Band(places + 1, mean, spread)
