"""Training curves of every model: plain, with its best evolved graph, with identity."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.store import Store
from ecg_gnn.study.store.curves import known_steps, thinned
from ecg_gnn.system.canvas import COLOURS, Paint, in_lines
from ecg_gnn_lab.tables.document import Source

Series = NDArray[np.float64]
_MOST_POINTS = 250  # of a line: a panel is hardly wider


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """Means over trainings, with the sample standard deviation around them.

    NaN where no training has a number; the spread of a single training is zero.
    """

    steps: NDArray[np.int64]
    """Counted from 1"""
    mean: Series
    spread: Series


Panel = list[tuple[Cell, Band]]


def curves(source: Source) -> Paint | None:
    """Test score at every step: mean over splits, one standard deviation around it.

    Models that have an evolved graph somewhere, if there are any: many more are only to
    be compared by their last scores.
    """
    selection = source.selection
    models = selection.models()
    compared = {cells[0].key.model_label for cells in models if best_ecg(cells)}
    panels = [
        _panel(source.store, _shown(selection, cells))
        for cells in models
        if not compared or cells[0].key.model_label in compared
    ]
    panels = [panel for panel in panels if panel]
    return (lambda kind: _figure(kind, panels)) if panels else None


def _shown(selection: Selection, cells: Sequence[Cell]) -> list[Cell]:
    """The best ECG cell between the two that it is compared with."""
    best = best_ecg(cells)
    if best is None:
        return [cell for cell in cells if cell.key.variant in ("baseline", "identity")]
    rivals = [selection.rival(best, other) for other in ("baseline", "identity")]
    return [cell for cell in (rivals[0], best, rivals[1]) if cell is not None]


def _panel(store: Store, cells: Sequence[Cell]) -> Panel:
    found = [(cell, score_band(store, cell)) for cell in cells]
    return [(cell, band) for cell, band in found if band is not None]


def _figure(kind: Any, panels: Sequence[Panel]) -> Any:
    """A row per dataset, a column per model."""
    keys = [panel[0][0].key for panel in panels]
    datasets = list(dict.fromkeys((k.dataset, k.dataset_sha256) for k in keys))
    models = list(dict.fromkeys((k.model_label, k.random_splits) for k in keys))
    size = (0.6 + 3.1 * len(models), 0.5 + 2.4 * len(datasets))
    figure = kind(figsize=size, layout="constrained")
    axes = figure.subplots(len(datasets), len(models), squeeze=False)
    for unused in axes.ravel():
        unused.set_visible(False)
    for key, panel in zip(keys, panels, strict=True):
        row = datasets.index((key.dataset, key.dataset_sha256))
        column = models.index((key.model_label, key.random_splits))
        axes[row, column].set_visible(True)
        _draw_panel(axes[row, column], panel)
    return figure


def _draw_panel(axes: Any, panel: Panel) -> None:
    for cell, band in panel:
        colour = COLOURS[cell.key.variant]
        mean, spread = 100 * band.mean, 100 * band.spread
        label = in_lines(cell.label)
        axes.plot(band.steps, mean, color=colour, lw=1.2, label=label)
        axes.fill_between(
            band.steps, mean - spread, mean + spread, color=colour, alpha=0.15, lw=0
        )
    low, high = _window([band for _, band in panel])
    axes.set_ylim(low, high)
    key = panel[0][0].key
    axes.set_title(f"{key.dataset} · {key.model_label}", loc="left")
    axes.set_xlabel("step")
    axes.set_ylabel("test score (%)")
    axes.legend(loc="lower right", fontsize=7)


def _window(found: Sequence[Band]) -> tuple[float, float]:
    """Ends of the axis: for what comes after the scores' first rush."""
    ends: list[float] = []
    for band in found:
        later = band.steps >= 0.08 * band.steps[-1]
        for side in (band.mean - band.spread, band.mean + band.spread):
            ends += [float(100 * end) for end in side[later] if np.isfinite(end)]
    low, high = min(ends, default=0.0), max(ends, default=100.0)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def score_band(store: Store, cell: Cell) -> Band | None:
    """Test scores of a cell's chosen configuration; None where no curves were kept."""
    kept = [store.curves(record.id) for record in cell.chosen.records]
    found = [curves for curves in kept if curves is not None and curves.losses.size]
    if not found:
        return None
    places = thinned(known_steps(found), _MOST_POINTS)
    return _band([curves.test_scores for curves in found], places)


def _band(curves: Sequence[NDArray[np.float32]], places: NDArray[np.int64]) -> Band:
    rows = np.full((len(curves), places[-1] + 1), np.nan)
    for row, curve in zip(rows, curves, strict=True):
        row[: curve.size] = curve[: row.size]
    rows[~np.isfinite(rows)] = np.nan
    rows = rows[:, places]
    with warnings.catch_warnings():
        # A step at which every training had diverged has no mean; NaN says so.
        warnings.simplefilter("ignore", RuntimeWarning)
        mean = np.nanmean(rows, axis=0)
        spread = np.nanstd(rows, axis=0, ddof=1) if len(rows) > 1 else 0 * mean
    # Where one training alone is left, it is a line without a band.
    spread = np.where(np.isnan(spread) & ~np.isnan(mean), 0.0, spread)
    return Band(steps=places + 1, mean=mean, spread=spread)
