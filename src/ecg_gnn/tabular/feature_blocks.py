"""Feature blocks: some columns of one kind, and how they become features.

A block keeps its fitted state as plain values and arrays: nothing is pickled.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.tabular.column_kinds import Kind
from ecg_gnn.tabular.columns import Table, filled_texts, numeric_column
from ecg_gnn.tabular.quantiles import Floats, fit_grid, to_normal

ENCODINGS = ("quantile", "standard", "raw")
"""How numbers become features: normal by their quantiles, standardised, as they are."""
MAX_CATEGORIES = 4096
"""Features that one column of categories or sets gets, unless the user says."""
OTHER = "\x00other"
"""Stands for all categories without a feature of their own; no file can have it."""

Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Some columns of a table, and how they become features."""

    kind: ClassVar[Kind]

    columns: list[str]

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the features."""

    def owners(self) -> list[str]:
        """The column that each feature is made of."""
        (column,) = self.columns
        return [column] * len(self.names())

    @abstractmethod
    def transform(self, table: Table) -> Features:
        """Features of every row, ``[N, F]``."""

    def left_out(self, table: Table) -> dict[str, str]:
        """What of the columns that the block was fitted on has no feature."""
        return {}

    def is_sound(self) -> bool:
        """Whether fields that were read from a file belong together."""
        return are_distinct_texts(self.columns)


@dataclass(frozen=True, eq=False)
class NumericBlock(Block):
    """Numbers, the median where one is missing, and a mark for that."""

    kind: ClassVar[Kind] = "numeric"

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
    def fit(cls, table: Table, columns: list[str], *, encoding: str) -> "NumericBlock":
        """Learn what an encoding needs; columns have at least one number each."""
        values = _number_matrix(table, columns)
        missing = np.isnan(values)
        medians = np.nanmedian(values, axis=0)
        means, scales = np.zeros(len(columns)), np.ones(len(columns))
        if encoding == "standard":
            filled = np.where(missing, medians, values)
            means, scales = filled.mean(axis=0), filled.std(axis=0)
            # Rounding errors of a column of equal numbers are no scale.
            scales[scales <= 1e-9 * np.abs(means)] = 1.0
        grids = np.stack([fit_grid(each) for each in values.T])
        return cls(
            columns=columns,
            medians=medians,
            means=means,
            scales=scales,
            indicated=[columns[place] for place in np.flatnonzero(missing.any(axis=0))],
            grids=grids if encoding == "quantile" else None,
        )

    def names(self) -> list[str]:
        """The columns, then the indicators."""
        return [*self.columns, *(f"{name} is missing" for name in self.indicated)]

    def owners(self) -> list[str]:
        """The column that each feature is made of."""
        return [*self.columns, *self.indicated]

    def transform(self, table: Table) -> Features:
        """Fill in, encode, and append the indicators."""
        values = _number_matrix(table, self.columns)
        missing = np.isnan(values)
        if self.grids is None:
            filled = np.where(missing, self.medians, values)
            encoded = (filled - self.means) / self.scales
        else:
            pairs = zip(values.T, self.grids, strict=True)
            encoded = np.stack([to_normal(*pair) for pair in pairs], axis=1)
        places = [self.columns.index(name) for name in self.indicated]
        return np.hstack([encoded, missing[:, places]]).astype(np.float32)

    def is_sound(self) -> bool:
        """Whether statistics are one number per column, and indicators are columns."""
        statistics = (self.medians, self.means, self.scales)
        return (
            super().is_sound()
            and (not self.indicated or are_distinct_texts(self.indicated))
            and set(self.indicated) <= set(self.columns)
            and all(are_numbers(each, len(self.columns)) for each in statistics)
            and (self.grids is None or are_grids(self.grids, len(self.columns)))
        )


@dataclass(frozen=True, eq=False)
class CategoryBlock(Block):
    """Categories: one feature each, the rare ones together, none for unknown ones."""

    kind: ClassVar[Kind] = "categorical"

    categories: list[list[str]]
    """Those of each column that have a feature, OTHER last if it has one."""

    @classmethod
    def fit(cls, table: Table, columns: list[str], *, most: int) -> "CategoryBlock":
        """Keep categories that occur twice, at most ``most`` (0: all of them)."""
        texts = [filled_texts(table.columns[name]) for name in columns]
        return cls(columns, [_kept_categories(each, most) for each in texts])

    def names(self) -> list[str]:
        """``column=category``."""
        return [
            f"{column}={_category_name(category)}"
            for column, categories in zip(self.columns, self.categories, strict=True)
            for category in categories
        ]

    def owners(self) -> list[str]:
        """The column that each feature is made of."""
        pairs = zip(self.columns, self.categories, strict=True)
        return [column for column, categories in pairs for _ in categories]

    def transform(self, table: Table) -> Features:
        """One-hot rows."""
        pairs = zip(self.columns, self.categories, strict=True)
        texts = [(filled_texts(table.columns[name]), each) for name, each in pairs]
        return np.hstack([_one_hot(cells, each) for cells, each in texts])

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column whose category was not there in fitting, as far as is known.

        Categories that share a feature were not kept: a new one counts as one of them.
        """
        unseen = {}
        for name, categories in zip(self.columns, self.categories, strict=True):
            known = set(categories)
            cells = filled_texts(table.columns[name]) if OTHER not in known else []
            if new := [_category_name(text) for text in cells if text not in known]:
                unseen[name] = new
        return unseen

    def left_out(self, table: Table) -> dict[str, str]:
        """How many categories share a feature, and why."""
        notes = {}
        for name, categories in zip(self.columns, self.categories, strict=True):
            counts = Counter(filled_texts(table.columns[name]))
            rare = [n for text, n in counts.items() if text not in categories]
            if OTHER in categories:
                notes[name] = (
                    f"{len(rare)} of {len(counts)} categories share one feature "
                    f"({how_rare(rare)})"
                )
        return notes

    def is_sound(self) -> bool:
        """Whether every column has categories, each once."""
        return (
            super().is_sound()
            and type(self.categories) is list
            and len(self.categories) == len(self.columns)
            and all(map(are_distinct_texts, self.categories))
        )


def _number_matrix(table: Table, columns: list[str]) -> Floats:
    return np.stack([numeric_column(table, name) for name in columns], axis=1)


def most_frequent(counts: Counter[str], most: int) -> list[str]:
    """Those that occur at least twice, at most ``most`` of them (0: all), sorted."""
    often = [text for text, count in counts.items() if count > 1]
    often.sort(key=lambda text: (-counts[text], text))
    return sorted(often[:most] if most else often)


def how_rare(counts: Sequence[int]) -> str:
    """How frequent those are that have no feature of their own, at least one."""
    if max(counts) == 1:
        return "with one node each"
    return f"with up to {max(counts)} nodes; --max-categories 0 keeps them"


def _kept_categories(texts: list[str], most: int) -> list[str]:
    """The frequent ones and the empty text, then OTHER if it stands for several."""
    counts = Counter(texts)
    kept = sorted({*most_frequent(counts, most), *{""} & set(counts)})
    rest = sorted(set(counts) - set(kept))
    return sorted([*kept, *rest]) if len(rest) < 2 else [*kept, OTHER]


def _one_hot(texts: list[str], categories: list[str]) -> Features:
    """A column per category, that of OTHER for all that have none of their own."""
    places = {category: place for place, category in enumerate(categories)}
    columns = np.array([places.get(text, places.get(OTHER, -1)) for text in texts])
    is_column = np.equal.outer(columns, np.arange(len(categories)))
    return np.asarray(is_column, dtype=np.float32)


def _category_name(category: str) -> str:
    return {"": "(missing)", OTHER: "(other)"}.get(category, category)


def are_distinct_texts(values: Any) -> bool:
    """Whether these are texts in a list, at least one, each once."""
    is_list = type(values) is list and all(type(value) is str for value in values)
    return is_list and len(set(values)) == len(values) > 0


def are_numbers(values: Any, count: int) -> bool:
    """Whether these are ``count`` finite numbers in an array."""
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return is_array and values.shape == (count,) and bool(np.isfinite(values).all())


def are_grids(values: Any, count: int) -> bool:
    """Whether these are sorted numbers for each of ``count`` columns."""
    is_matrix = isinstance(values, np.ndarray) and values.ndim == 2
    return (
        is_matrix
        and 0 not in values.shape
        and len(values) == count
        and are_numbers(values.reshape(-1), values.size)
        and bool((np.diff(values, axis=1) >= 0).all())
    )
