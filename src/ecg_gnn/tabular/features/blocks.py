"""Parts of the pipeline: numbers, categories, text.

Each is fitted by scikit-learn, keeps its fitted state as plain lists and arrays, and is
built again from those through scikit-learn's public attributes: nothing is pickled.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.features.kinds import WORD, numbers_of, texts_of
from ecg_gnn.tabular.tables import Table

MAX_CATEGORIES = 64
MAX_WORDS = 256
OTHER = "\x00other"
"""Stands for all categories beyond the most frequent ones; no file can have it."""

Floats = NDArray[np.float64]
Features = NDArray[np.float32]


class Block(Protocol):
    """Some columns of a table, and how they become features."""

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""

    def names(self) -> list[str]:
        """What the features are called."""

    def transform(self, table: Table) -> Features:
        """Features of every row, ``[N, F]``."""

    def state(self) -> dict[str, Any]:
        """Everything fitted, as plain values and arrays."""


@dataclass(frozen=True, eq=False)
class NumericBlock:
    """Numbers: the median where one is missing, standardised, and which were missing.

    Attributes:
        columns: The columns.
        medians: Of each.
        means: Of each, after filling in.
        scales: The standard deviation of each, 1 where it is 0.
        indicated: Columns that get a second feature: 1 where the value is missing.
    """

    columns: list[str]
    medians: Floats
    means: Floats
    scales: Floats
    indicated: list[str]

    @classmethod
    def fit(cls, table: Table, columns: list[str], *, scale: bool) -> "NumericBlock":
        """Learn medians, means and scales; without ``scale`` numbers stay as they are.

        Columns are numeric and have at least one value each.
        """
        values = _numbers(table, columns)
        imputer = SimpleImputer(strategy="median").fit(values)
        scaler = StandardScaler().fit(imputer.transform(values))
        lost = np.isnan(values).sum(axis=0).tolist()
        return cls(
            columns=columns,
            medians=imputer.statistics_,
            means=scaler.mean_ if scale else np.zeros(len(columns)),
            scales=scaler.scale_ if scale else np.ones(len(columns)),
            indicated=[
                name for name, is_lost in zip(columns, lost, strict=True) if is_lost
            ],
        )

    def names(self) -> list[str]:
        """The columns, then the indicators."""
        return [*self.columns, *(f"{name} is missing" for name in self.indicated)]

    def transform(self, table: Table) -> Features:
        """Fill in, standardise, and append the indicators."""
        values = _numbers(table, self.columns)
        # The median of one row is that row: an imputer with these very medians.
        imputer = SimpleImputer(strategy="median").fit(self.medians[None])
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_ = self.means, self.scales
        scaler.n_features_in_ = len(self.columns)
        filled = scaler.transform(imputer.transform(values))
        places = [self.columns.index(name) for name in self.indicated]
        return np.hstack([filled, np.isnan(values[:, places])]).astype(np.float32)

    def state(self) -> dict[str, Any]:
        """Names, and an array per statistic."""
        return {
            "columns": self.columns,
            "indicated": self.indicated,
            "medians": self.medians,
            "means": self.means,
            "scales": self.scales,
        }


@dataclass(frozen=True, eq=False)
class CategoryBlock:
    """Categories: one feature each, the rare ones together, none for unknown ones.

    Attributes:
        columns: The columns.
        categories: Those of each column that have a feature, OTHER last if it has one.
    """

    columns: list[str]
    categories: list[list[str]]

    @classmethod
    def fit(cls, table: Table, columns: list[str]) -> "CategoryBlock":
        """Keep the most frequent categories; a missing value is one, too."""
        return cls(columns, [_frequent(texts_of(table.columns[c])) for c in columns])

    def names(self) -> list[str]:
        """``column=category``."""
        return [
            f"{column}={_shown(category)}"
            for column, categories in zip(self.columns, self.categories, strict=True)
            for category in categories
        ]

    def transform(self, table: Table) -> Features:
        """One-hot rows."""
        known = [set(categories) for categories in self.categories]
        cells = [
            [text if text in kept else OTHER for text in texts_of(table.columns[name])]
            for name, kept in zip(self.columns, known, strict=True)
        ]
        encoder = OneHotEncoder(
            categories=[np.array(part, dtype=object) for part in self.categories],
            handle_unknown="ignore",
            sparse_output=False,
            dtype=np.float32,
        )
        first = np.array([[part[0] for part in self.categories]], dtype=object)
        found: Features = encoder.fit(first).transform(np.array(cells, dtype=object).T)
        return found

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column that are like nothing it was fitted on, as far as is known.

        Of a column with more categories than features the rare ones were not kept.
        """
        found = {}
        for name, categories in zip(self.columns, self.categories, strict=True):
            known = set(categories)
            cells = texts_of(table.columns[name]) if OTHER not in known else []
            if new := [_shown(text) for text in cells if text not in known]:
                found[name] = new
        return found

    def state(self) -> dict[str, Any]:
        """Names only."""
        return {"columns": self.columns, "categories": self.categories}


@dataclass(frozen=True, eq=False)
class TextBlock:
    """Text of one column: TF-IDF of its most frequent words, or hashed words.

    Attributes:
        columns: The one column.
        words: The vocabulary; None for hashing.
        idf: The weight of each word.
        width: Number of features.
    """

    columns: list[str]
    words: list[str] | None
    idf: Floats
    width: int

    @classmethod
    def fit(cls, table: Table, column: str, *, hashed: bool) -> "TextBlock":
        """Learn the vocabulary, if there is to be one."""
        if hashed:
            return cls([column], None, np.ones(0), MAX_WORDS)
        vectorizer = TfidfVectorizer(
            max_features=MAX_WORDS, token_pattern=WORD.pattern, sublinear_tf=True
        )
        texts = texts_of(table.columns[column])
        if not any(WORD.search(text) for text in texts):
            raise InputError(f"{table.source}: {column!r} must have words (got none)")
        vectorizer.fit(texts)
        words = vectorizer.get_feature_names_out().tolist()
        return cls([column], words, vectorizer.idf_, len(words))

    def names(self) -> list[str]:
        """``column:word``, or ``column#number``."""
        (column,) = self.columns
        if self.words is None:
            return [f"{column}#{place}" for place in range(self.width)]
        return [f"{column}:{word}" for word in self.words]

    def transform(self, table: Table) -> Features:
        """Rows of length one, or of zeros where no word is known."""
        texts = texts_of(table.columns[self.columns[0]])
        if self.words is None:
            vectorizer = HashingVectorizer(
                n_features=self.width, token_pattern=WORD.pattern
            )
        else:
            vectorizer = TfidfVectorizer(
                vocabulary=self.words, token_pattern=WORD.pattern, sublinear_tf=True
            )
            vectorizer.idf_ = self.idf
        found: Features = vectorizer.transform(texts).toarray().astype(np.float32)
        return found

    def state(self) -> dict[str, Any]:
        """The vocabulary and its weights."""
        return {
            "columns": self.columns,
            "words": self.words,
            "idf": self.idf,
            "width": self.width,
        }


def _numbers(table: Table, columns: list[str]) -> Floats:
    found = [numbers_of(table.source, name, table.columns[name]) for name in columns]
    return np.stack(found, axis=1)


def _frequent(values: list[str]) -> list[str]:
    counts = Counter(values)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    kept = sorted(ordered[:MAX_CATEGORIES])
    return kept if len(ordered) <= MAX_CATEGORIES else [*kept, OTHER]


def _shown(category: str) -> str:
    return {"": "(missing)", OTHER: "(other)"}.get(category, category)


BLOCKS: dict[str, type[Any]] = {
    "numeric": NumericBlock,
    "categorical": CategoryBlock,
    "text": TextBlock,
}
