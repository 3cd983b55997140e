"""Feature blocks: some columns of one kind, and how they become features.

Each is fitted by scikit-learn (imported where it is used: that takes half a second) and
keeps its fitted state as plain lists and arrays: nothing is pickled.
"""

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import WORD, Kind, Table, filled_texts, numeric_column

MAX_CATEGORIES = 64
MAX_WORDS = 256
OTHER = "\x00other"
"""Stands for all categories beyond the most frequent ones; no file can have it."""

Floats = NDArray[np.float64]
Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Block(ABC):
    """Some columns of a table, and how they become features."""

    kind: ClassVar[Kind]

    columns: list[str]

    @abstractmethod
    def names(self) -> list[str]:
        """The names of the features."""

    @abstractmethod
    def transform(self, table: Table) -> Features:
        """Features of every row, ``[N, F]``."""

    def is_sound(self) -> bool:
        """Whether fields that were read from a file belong together."""
        return _are_distinct_texts(self.columns)


@dataclass(frozen=True, eq=False)
class NumericBlock(Block):
    """Numbers: standardised, the median where one is missing, and a mark for that."""

    kind: ClassVar[Kind] = "numeric"

    medians: Floats
    means: Floats
    """After filling in."""
    scales: Floats
    """Standard deviations, 1 where one is 0."""
    indicated: list[str]
    """Columns that get a second feature: 1 where the value is missing."""

    @classmethod
    def fit(cls, table: Table, columns: list[str], *, scale: bool) -> "NumericBlock":
        """Learn medians, means and scales; without ``scale`` numbers stay as they are.

        Columns are numeric and have at least one value each.
        """
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import StandardScaler

        values = _number_matrix(table, columns)
        imputer = SimpleImputer(strategy="median").fit(values)
        scaler = StandardScaler().fit(imputer.transform(values))
        has_missing = np.isnan(values).any(axis=0)
        return cls(
            columns=columns,
            medians=imputer.statistics_,
            means=scaler.mean_ if scale else np.zeros(len(columns)),
            scales=scaler.scale_ if scale else np.ones(len(columns)),
            indicated=[columns[place] for place in np.flatnonzero(has_missing)],
        )

    def names(self) -> list[str]:
        """The columns, then the indicators."""
        return [*self.columns, *(f"{name} is missing" for name in self.indicated)]

    def transform(self, table: Table) -> Features:
        """Fill in, standardise, and append the indicators."""
        values = _number_matrix(table, self.columns)
        missing = np.isnan(values)
        scaled = (np.where(missing, self.medians, values) - self.means) / self.scales
        places = [self.columns.index(name) for name in self.indicated]
        return np.hstack([scaled, missing[:, places]]).astype(np.float32)

    def is_sound(self) -> bool:
        """Whether statistics are one number per column, and indicators are columns."""
        statistics = (self.medians, self.means, self.scales)
        return (
            super().is_sound()
            and (not self.indicated or _are_distinct_texts(self.indicated))
            and set(self.indicated) <= set(self.columns)
            and all(_are_numbers(each, len(self.columns)) for each in statistics)
        )


@dataclass(frozen=True, eq=False)
class CategoryBlock(Block):
    """Categories: one feature each, the rare ones together, none for unknown ones."""

    kind: ClassVar[Kind] = "categorical"

    categories: list[list[str]]
    """Those of each column that have a feature, OTHER last if it has one."""

    @classmethod
    def fit(cls, table: Table, columns: list[str]) -> "CategoryBlock":
        """Keep the most frequent categories; a missing value is one, too."""
        texts = [filled_texts(table.columns[name]) for name in columns]
        return cls(columns, [_most_frequent(each) for each in texts])

    def names(self) -> list[str]:
        """``column=category``."""
        return [
            f"{column}={_category_name(category)}"
            for column, categories in zip(self.columns, self.categories, strict=True)
            for category in categories
        ]

    def transform(self, table: Table) -> Features:
        """One-hot rows."""
        pairs = zip(self.columns, self.categories, strict=True)
        texts = [(filled_texts(table.columns[name]), each) for name, each in pairs]
        return np.hstack([_one_hot(cells, each) for cells, each in texts])

    def unseen(self, table: Table) -> dict[str, list[str]]:
        """Cells by column whose category was not there in fitting, as far as is known.

        The rare categories of a column with more of them than features were not kept.
        """
        unseen = {}
        for name, categories in zip(self.columns, self.categories, strict=True):
            known = set(categories)
            cells = filled_texts(table.columns[name]) if OTHER not in known else []
            if new := [_category_name(text) for text in cells if text not in known]:
                unseen[name] = new
        return unseen

    def is_sound(self) -> bool:
        """Whether every column has categories, each once."""
        return (
            super().is_sound()
            and type(self.categories) is list
            and len(self.categories) == len(self.columns)
            and all(map(_are_distinct_texts, self.categories))
        )


@dataclass(frozen=True, eq=False)
class TextBlock(Block):
    """Text of one column: TF-IDF of its most frequent words, or hashed words."""

    kind: ClassVar[Kind] = "text"

    words: list[str] | None
    """The vocabulary; None for hashing."""
    idf: Floats
    """The weight of each word."""
    width: int
    """Number of features."""

    @classmethod
    def fit(cls, table: Table, column: str, *, hashed: bool) -> "TextBlock":
        """Learn the vocabulary, if there is to be one."""
        if hashed:
            return cls([column], None, np.ones(0), MAX_WORDS)
        texts = filled_texts(table.columns[column])
        if not any(WORD.search(text) for text in texts):
            raise InputError(f"{table.source}: {column!r} must have words (got none)")
        vectorizer = _tfidf(max_features=MAX_WORDS).fit(texts)
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
        from sklearn.feature_extraction.text import HashingVectorizer

        texts = filled_texts(table.columns[self.columns[0]])
        if self.words is None:
            vectorizer = HashingVectorizer(
                n_features=self.width, token_pattern=WORD.pattern
            )
        else:
            vectorizer = _tfidf(vocabulary=self.words)
            vectorizer.idf_ = self.idf
        rows: Features = vectorizer.transform(texts).toarray().astype(np.float32)
        return rows

    def is_sound(self) -> bool:
        """Whether there is one column, and a weight for every word."""
        if not super().is_sound() or len(self.columns) != 1:
            return False
        if self.words is None:
            return type(self.width) is int and 0 < self.width <= 1 << 16
        has_words = _are_distinct_texts(self.words) and len(self.words) == self.width
        return has_words and _are_numbers(self.idf, len(self.words))


BLOCKS: dict[str, type[Block]] = {
    block.kind: block for block in (NumericBlock, CategoryBlock, TextBlock)
}


def _number_matrix(table: Table, columns: list[str]) -> Floats:
    return np.stack([numeric_column(table, name) for name in columns], axis=1)


def _most_frequent(values: list[str]) -> list[str]:
    counts = Counter(values)
    ordered = sorted(counts, key=lambda value: (-counts[value], value))
    kept = sorted(ordered[:MAX_CATEGORIES])
    return kept if len(ordered) <= MAX_CATEGORIES else [*kept, OTHER]


def _one_hot(texts: list[str], categories: list[str]) -> Features:
    """A column per category, that of OTHER for all that have none of their own."""
    places = {category: place for place, category in enumerate(categories)}
    columns = np.array([places.get(text, places.get(OTHER, -1)) for text in texts])
    is_column = np.equal.outer(columns, np.arange(len(categories)))
    return np.asarray(is_column, dtype=np.float32)


def _category_name(category: str) -> str:
    return {"": "(missing)", OTHER: "(other)"}.get(category, category)


def _tfidf(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=WORD.pattern, sublinear_tf=True, **options)


def _are_distinct_texts(values: Any) -> bool:
    """Whether these are texts in a list, at least one, each once."""
    is_list = type(values) is list and all(type(value) is str for value in values)
    return is_list and len(set(values)) == len(values) > 0


def _are_numbers(values: Any, count: int) -> bool:
    is_array = isinstance(values, np.ndarray) and values.dtype.kind == "f"
    return is_array and values.shape == (count,) and bool(np.isfinite(values).all())
