"""Feature blocks of texts (many words in a cell) and sets (many elements)."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.column_kinds import WORD, Kind, guess_separator, split_set
from ecg_gnn.tabular.columns import Table, filled_texts, present_texts
from ecg_gnn.tabular.feature_blocks import (
    Block,
    Features,
    are_distinct_texts,
    are_grids,
    are_numbers,
    how_rare,
    most_frequent,
)
from ecg_gnn.tabular.quantiles import Floats, fit_grid, to_normal

MAX_WORDS = 2048
"""Features that one column of text gets, unless the user says."""
_MAX_HASHES = 1 << 16


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
    def fit(cls, table: Table, column: str, *, hashed: bool, most: int) -> "TextBlock":
        """Learn the vocabulary, if there is to be one, of at most ``most`` words."""
        if hashed:
            return cls([column], None, np.ones(0), min(most or MAX_WORDS, _MAX_HASHES))
        texts = filled_texts(table.columns[column])
        if not any(WORD.search(text) for text in texts):
            raise InputError(f"{table.source}: {column!r} must have words (got none)")
        vectorizer = _tfidf(max_features=most or None).fit(texts)
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

    def left_out(self, table: Table) -> dict[str, str]:
        """How many words have no feature."""
        (column,) = self.columns
        if self.words is None:
            return {}
        texts = filled_texts(table.columns[column])
        words = {word for text in texts for word in WORD.findall(text.lower())}
        if not (rest := len(words.difference(self.words))):
            return {}
        return {
            column: f"{rest} of {len(words)} words, the rarest, have no feature "
            "(--max-words 0 keeps all)"
        }

    def is_sound(self) -> bool:
        """Whether there is one column, and a weight for every word."""
        if not super().is_sound() or len(self.columns) != 1:
            return False
        if self.words is None:
            return type(self.width) is int and 0 < self.width <= _MAX_HASHES
        has_words = are_distinct_texts(self.words) and len(self.words) == self.width
        return has_words and are_numbers(self.idf, len(self.words))


@dataclass(frozen=True, eq=False)
class SetBlock(Block):
    """Sets of one column: a feature per element, and how many elements there are.

    A row of m elements has 1/sqrt(m) in each of their features, so that rows with many
    elements do not outweigh the others.
    """

    kind: ClassVar[Kind] = "set"

    separator: str
    elements: list[str]
    """Those that occur in at least two rows."""
    grids: Floats | None
    """Quantiles of the number of elements, ``[1, G]``; None for the number itself."""

    @classmethod
    def fit(cls, table: Table, column: str, *, encoding: str, most: int) -> "SetBlock":
        """Keep elements that occur twice, at most ``most`` of them (0: all)."""
        separator = _separator(present_texts(table.columns[column]))
        cells = _split_cells(table, column, separator)
        elements = most_frequent(_count(cells), most)
        grids = fit_grid(_sizes(cells))[None] if encoding != "raw" else None
        return cls([column], separator, elements, grids)

    def names(self) -> list[str]:
        """``column:element``, and the number of elements."""
        (column,) = self.columns
        return [*(f"{column}:{each}" for each in self.elements), f"{column} (count)"]

    def transform(self, table: Table) -> Features:
        """Rows of length one if all their elements are known, and their sizes."""
        cells = _split_cells(table, self.columns[0], self.separator)
        places = {element: place for place, element in enumerate(self.elements)}
        rows = np.zeros((len(cells), len(places) + 1), dtype=np.float32)
        for row, cell in zip(rows, cells, strict=True):
            known = [places[element] for element in cell if element in places]
            row[known] = max(len(cell), 1) ** -0.5
        sizes = _sizes(cells)
        rows[:, -1] = sizes if self.grids is None else to_normal(sizes, self.grids[0])
        return rows

    def left_out(self, table: Table) -> dict[str, str]:
        """How many elements have no feature."""
        (column,) = self.columns
        counts = _count(_split_cells(table, column, self.separator))
        if not (rare := [counts[each] for each in counts.keys() - set(self.elements)]):
            return {}
        return {
            column: f"{len(rare)} of {len(counts)} elements have no feature "
            f"({how_rare(rare)})"
        }

    def is_sound(self) -> bool:
        """Whether there is one column and a way to split it."""
        return (
            super().is_sound()
            and len(self.columns) == 1
            and type(self.separator) is str
            and self.separator != ""
            and (self.elements == [] or are_distinct_texts(self.elements))
            and (self.grids is None or are_grids(self.grids, 1))
        )


def _separator(values: list[str]) -> str:
    """What separates elements, or would: a column may be said to have sets."""
    marks = [mark for mark in ";|," if any(mark in value for value in values)]
    return guess_separator(values) or (marks[0] if marks else " ")


def _split_cells(table: Table, column: str, separator: str) -> list[list[str]]:
    texts = filled_texts(table.columns[column])
    return [split_set(text, separator) for text in texts]


def _count(cells: list[list[str]]) -> Counter[str]:
    return Counter(element for cell in cells for element in cell)


def _sizes(cells: list[list[str]]) -> Floats:
    return np.array([len(cell) for cell in cells], dtype=np.float64)


def _tfidf(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=WORD.pattern, sublinear_tf=True, **options)
