"""Numbers to a normal distribution by their quantiles."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_GRID_POINTS = 256


def fit_grid(values: Floats) -> Floats:
    """The quantiles of a column's values (NaN: missing), ``[G]``; some must be there.

    Point i is the quantile (i + 1/2) / G: with as many points as values, their ranks.
    """
    present = values[~np.isnan(values)]
    levels = (np.arange(_GRID_POINTS) + 0.5) / _GRID_POINTS
    grid: Floats = np.quantile(present, levels, method="hazen")
    # Rounding must not put a point before the one to its left.
    return np.maximum.accumulate(grid)


def to_normal(values: Floats, grid: Floats) -> Floats:
    """Values ``[N]`` as a normal distribution has their quantiles; 0 where missing.

    Equal values get the middle of their quantiles; beyond the grid is its end.
    """
    from scipy.special import ndtri

    levels = (np.arange(len(grid)) + 0.5) / len(grid)
    highest = np.interp(values, grid, levels)
    lowest = -np.interp(-values, -grid[::-1], -levels[::-1])
    normal: Floats = ndtri((lowest + highest) / 2)
    return np.where(np.isnan(values), 0.0, normal)
