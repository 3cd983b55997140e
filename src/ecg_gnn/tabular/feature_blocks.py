"""Feature blocks: some columns of one kind, and how they become features.

A block keeps its fitted state as plain values and arrays: nothing is pickled.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.tabular.columns import Table, filled_texts, numeric_column

if TYPE_CHECKING:
    from ecg_gnn.tabular.importing import ImportOptions

ENCODINGS = ("quantile", "standard", "raw")
"""How numbers become features: normal by their quantiles, standardised, as they are."""
MAX_CATEGORIES = 4096
"""Features that one column of categories or sets gets, unless the user says."""
OTHER = "\x00other"
"""Stands for all categories without a feature of their own; no file can have it."""
_GRID_POINTS = 256

Features = NDArray[np.float32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Some columns of a table, and how they become features."""

    kind: ClassVar[str]

    columns: list[str]
    notes: dict[str, str] = field(default_factory=dict, kw_only=True)
    """What of a column has no feature; not stored."""

    @classmethod
    @abstractmethod
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Learn how columns, each with a value at least, become features."""

    @abstractmethod
    def features(self) -> list[tuple[str, str]]:
        """The column that each feature is made of, and the feature's name."""

    @abstractmethod
    def transform(self, table: Table) -> Features:
        """Features of every row, ``[N, F]``."""


@dataclass(frozen=True, eq=False)
class NumericBlock(Block):
    """Numbers, the median where one is missing, and a mark for that."""

    kind: ClassVar[str] = "numeric"

    medians: Floats
    means: Floats
    """After filling in."""
    scales: Floats
    """Standard deviations, 1 where one is 0."""
    indicated: list[str]
    """Columns that get a second feature: 1 where the value is missing."""
    grids: Floats | None = None
    """Quantiles of every column, ``[C, G]``; then means and scales are not used."""

    @classmethod
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Learn what the encoding needs."""
        values = np.stack([numeric_column(table, name) for name in columns], axis=1)
        missing = np.isnan(values)
        medians = np.nanmedian(values, axis=0)
        means, scales, grids = np.zeros(len(columns)), np.ones(len(columns)), None
        if options.encoding == "standard":
            filled = np.where(missing, medians, values)
            means, scales = filled.mean(axis=0), filled.std(axis=0)
            # Rounding errors of a column of equal numbers are no scale.
            scales[scales <= 1e-9 * np.abs(means)] = 1.0
        elif options.encoding == "quantile":
            grids = np.stack([fit_grid(each) for each in values.T])
        indicated = [columns[place] for place in np.flatnonzero(missing.any(axis=0))]
        return cls(columns, medians, means, scales, indicated, grids)

    def features(self) -> list[tuple[str, str]]:
        """The columns, then the indicators."""
        marks = [(name, f"{name} is missing") for name in self.indicated]
        return [*((name, name) for name in self.columns), *marks]

    def transform(self, table: Table) -> Features:
        """Fill in, encode, and append the indicators."""
        columns = [numeric_column(table, name) for name in self.columns]
        values = np.stack(columns, axis=1)
        missing = np.isnan(values)
        if self.grids is None:
            filled = np.where(missing, self.medians, values)
            encoded = (filled - self.means) / self.scales
        else:
            pairs = zip(values.T, self.grids, strict=True)
            encoded = np.stack([to_normal(*pair) for pair in pairs], axis=1)
        places = [self.columns.index(name) for name in self.indicated]
        return np.hstack([encoded, missing[:, places]]).astype(np.float32)


@dataclass(frozen=True, eq=False)
class CategoryBlock(Block):
    """Categories: one feature each, the rare ones together, none for unknown ones."""

    kind: ClassVar[str] = "categorical"

    categories: list[list[str]]
    """Those of each column that have a feature, OTHER last if it has one."""

    @classmethod
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Keep categories that occur twice, the most frequent ones if there are many.

        A single one that would be left over is kept as well.
        """
        categories, notes = [], {}
        for name in columns:
            counts = Counter(filled_texts(table.columns[name]))
            kept = sorted(
                {*most_frequent(counts, options.max_categories), *{""} & set(counts)}
            )
            rest = sorted(set(counts) - set(kept))
            if len(rest) < 2:
                categories.append(sorted([*kept, *rest]))
                continue
            categories.append([*kept, OTHER])
            notes[name] = (
                f"{len(rest)} of {len(counts)} categories share one feature "
                f"({how_rare([counts[text] for text in rest])})"
            )
        return cls(columns, categories, notes=notes)

    def features(self) -> list[tuple[str, str]]:
        """``column=category``."""
        return [
            (column, f"{column}={_category_name(category)}")
            for column, categories in zip(self.columns, self.categories, strict=True)
            for category in categories
        ]

    def transform(self, table: Table) -> Features:
        """One-hot rows; the column of OTHER is for all that have none of their own."""
        blocks = []
        for name, categories in zip(self.columns, self.categories, strict=True):
            places = {category: place for place, category in enumerate(categories)}
            other = places.get(OTHER, -1)
            cells = filled_texts(table.columns[name])
            columns = np.array([places.get(text, other) for text in cells])
            blocks.append(np.equal.outer(columns, np.arange(len(categories))))
        return np.hstack(blocks).astype(np.float32)

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column whose category was not there in fitting, as far as is known.

        Categories that share a feature were not kept: a new one counts as one of them.
        """
        unseen = {}
        for name, known in zip(self.columns, self.categories, strict=True):
            new = set(cells := filled_texts(table.columns[name])) - {*known}
            if new and OTHER not in known:
                unseen[name] = [_category_name(text) for text in cells if text in new]
        return unseen


def fit_grid(values: Floats) -> Floats:
    """The quantiles of a column's values (NaN: missing), ``[G]``; some must be there.

    Point i is the quantile (i + 1/2) / G: with as many points as values, their ranks.
    """
    levels = (np.arange(_GRID_POINTS) + 0.5) / _GRID_POINTS
    grid: Floats = np.quantile(values[~np.isnan(values)], levels, method="hazen")
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


def most_frequent(counts: Counter[str], most: int) -> list[str]:
    """Those that occur at least twice, at most ``most`` of them (0: all), sorted."""
    often = [text for text in sorted(counts) if counts[text] > 1]
    return sorted(sorted(often, key=lambda text: -counts[text])[: most or None])


def how_rare(counts: Sequence[int]) -> str:
    """How frequent those are that have no feature of their own, at least one."""
    if max(counts) == 1:
        return "with one node each"
    return f"with up to {max(counts)} nodes; --max-categories 0 keeps them"


def _category_name(category: str) -> str:
    return {"": "(missing)", OTHER: "(other)"}.get(category, category)
