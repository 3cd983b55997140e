"""Feature blocks of one column: texts (many words), sets (many elements) and dates."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

import numpy as np

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.column_kinds import WORD, guess_separator, split_set
from ecg_gnn.tabular.columns import Table, filled_texts, parse_date, present_texts
from ecg_gnn.tabular.feature_blocks import (
    Block,
    Features,
    Floats,
    fit_grid,
    how_rare,
    most_frequent,
    to_normal,
)

MAX_WORDS = 2048
"""Features that one column of text gets, unless the user says."""
_MAX_HASHES = 1 << 16
_EPOCH = datetime(1970, 1, 1)
_MONTHS = [f"month={each}" for each in range(1, 13)]
_WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]


@dataclass(frozen=True, eq=False)
class TextBlock(Block):
    """Text of one column: TF-IDF of its most frequent words, or hashed words."""

    kind: ClassVar[str] = "text"

    words: list[str] | None
    """The vocabulary; None for hashing."""
    idf: Floats
    """The weight of each word."""
    width: int
    """Number of features."""

    def __post_init__(self) -> None:
        if not 0 < self.width <= (len(self.words) if self.words else _MAX_HASHES):
            raise ValueError(f"{self.width} features")

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

    def features(self) -> list[tuple[str, str]]:
        """``column:word``, or ``column#number``."""
        (column,) = self.columns
        if self.words is None:
            return [(column, f"{column}#{place}") for place in range(self.width)]
        return [(column, f"{column}:{word}") for word in self.words]

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


def _tfidf(**options: Any) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(token_pattern=WORD.pattern, sublinear_tf=True, **options)


@dataclass(frozen=True, eq=False)
class SetBlock(Block):
    """Sets of one column: a feature per element, and how many elements there are.

    A row of m elements has 1/sqrt(m) in each of their features, so that rows with many
    elements do not outweigh the others.
    """

    kind: ClassVar[str] = "set"

    separator: str
    elements: list[str]
    """Those that occur in at least two rows."""
    grids: Floats | None
    """Quantiles of the number of elements, ``[1, G]``; None for the number itself."""

    @classmethod
    def fit(cls, table: Table, column: str, *, encoding: str, most: int) -> "SetBlock":
        """Keep elements that occur twice, at most ``most`` of them (0: all)."""
        values = present_texts(table.columns[column])
        # A column may be said to have sets that do not look like sets.
        marks = [mark for mark in ";|," if any(mark in value for value in values)]
        separator = guess_separator(values) or (marks[0] if marks else " ")
        cells = _split_cells(table, column, separator)
        elements = most_frequent(_count(cells), most)
        return cls([column], separator, elements, _fit_grids(_sizes(cells), encoding))

    def features(self) -> list[tuple[str, str]]:
        """``column:element``, and the number of elements."""
        (column,) = self.columns
        names = [*(f"{column}:{each}" for each in self.elements), f"{column} (count)"]
        return [(column, name) for name in names]

    def transform(self, table: Table) -> Features:
        """Rows of length one if all their elements are known, and their sizes."""
        cells = _split_cells(table, self.columns[0], self.separator)
        places = {element: place for place, element in enumerate(self.elements)}
        rows = np.zeros((len(cells), len(places) + 1), dtype=np.float32)
        for row, cell in zip(rows, cells, strict=True):
            known = [places[element] for element in cell if element in places]
            row[known] = max(len(cell), 1) ** -0.5
        rows[:, -1] = _encoded(_sizes(cells), self.grids)
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


def _split_cells(table: Table, column: str, separator: str) -> list[list[str]]:
    texts = filled_texts(table.columns[column])
    return [split_set(text, separator) for text in texts]


def _count(cells: list[list[str]]) -> Counter[str]:
    return Counter(element for cell in cells for element in cell)


def _sizes(cells: list[list[str]]) -> Floats:
    return np.array([len(cell) for cell in cells], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DateBlock(Block):
    """Dates of one column: a number of days, the month and the day of the week."""

    kind: ClassVar[str] = "date"

    grids: Floats | None
    """Quantiles of the days, ``[1, G]``; None for days since 1970 as they are."""

    @classmethod
    def fit(cls, table: Table, column: str, *, encoding: str) -> "DateBlock":
        """Learn the quantiles."""
        return cls([column], _fit_grids(_days(_dates(table, column)), encoding))

    def features(self) -> list[tuple[str, str]]:
        """Days, whether they are missing, months, days of the week."""
        (column,) = self.columns
        parts = [f"{column} {part}" for part in (*_MONTHS, *_WEEKDAYS)]
        return [(column, name) for name in (column, f"{column} is missing", *parts)]

    def transform(self, table: Table) -> Features:
        """Months and days of the week are 0 or 1; a missing date has none."""
        dates = _dates(table, self.columns[0])
        days = _days(dates)
        rows = np.zeros((len(dates), len(self.features())), dtype=np.float32)
        rows[:, 0], rows[:, 1] = _encoded(days, self.grids), np.isnan(days)
        for row, date in zip(rows, dates, strict=True):
            if date is not None:
                row[1 + date.month] = row[2 + len(_MONTHS) + date.weekday()] = 1
        return rows


def _dates(table: Table, column: str) -> list[datetime | None]:
    texts = filled_texts(table.columns[column])
    dates = [parse_date(text) for text in texts]
    for row, (text, date) in enumerate(zip(texts, dates, strict=True), 1):
        if text and date is None:
            raise InputError(
                f"{table.source}: {column!r} must be dates such as 2024-05-31 (got "
                f"{text!r:.60} in row {row})"
            )
    return dates


def _days(dates: list[datetime | None]) -> Floats:
    """Days since 1970, with the time of day as a fraction."""
    seconds = [np.nan if d is None else (d - _EPOCH).total_seconds() for d in dates]
    return np.array(seconds) / 86_400


def _fit_grids(values: Floats, encoding: str) -> Floats | None:
    """The quantiles of one column, ``[1, G]``; None if it is to stay as it is."""
    return None if encoding == "raw" else fit_grid(values)[None]


def _encoded(values: Floats, grids: Floats | None) -> Floats:
    return np.nan_to_num(values) if grids is None else to_normal(values, grids[0])
