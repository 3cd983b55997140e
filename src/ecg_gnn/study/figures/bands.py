"""Training curves of a cell: mean and spread over its splits and seeds."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.study.selection import Cell
from ecg_gnn.study.store import Store
from ecg_gnn.study.store.curves import known_steps, thinned

Series = NDArray[np.float64]
SERIES = {"test": "test_scores", "val": "val_scores", "loss": "losses"}
"""What is recorded at every step, by the names that figures use."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Band:
    """Means over trainings, with the sample standard deviation around them.

    NaN where no training has a number; the spread of a single training is zero.
    """

    steps: NDArray[np.int64]
    """Counted from 1"""
    mean: Series
    spread: Series


def bands(store: Store, cell: Cell, num_points: int | None = None) -> dict[str, Band]:
    """The curves of a cell's chosen configuration; empty where none were kept.

    Args:
        store: Where the curves are.
        cell: Whose.
        num_points: At most so many steps, first and last among them.
    """
    kept = [store.curves(record.id) for record in cell.chosen.records]
    found = [curves for curves in kept if curves is not None and curves.losses.size]
    if not found:
        return {}
    places = thinned(known_steps(found), num_points)
    return {
        name: _band([getattr(curves, field) for curves in found], places)
        for name, field in SERIES.items()
    }


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
