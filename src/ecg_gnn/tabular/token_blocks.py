"""Feature blocks of one column: texts (many words), sets (many elements) and dates."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self

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

if TYPE_CHECKING:
    from ecg_gnn.tabular.importing import ImportOptions

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
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Learn the vocabulary, if there is to be one."""
        (column,), most = columns, options.max_words
        if options.hashed:
            return cls(columns, None, np.ones(0), min(most or MAX_WORDS, _MAX_HASHES))
        texts = filled_texts(table.columns[column])
        found = {word for text in texts for word in WORD.findall(text.lower())}
        if not found:
            raise InputError(f"{table.source}: {column!r} must have words (got none)")
        vectorizer = _tfidf(max_features=most or None).fit(texts)
        words = vectorizer.get_feature_names_out().tolist()
        notes = {}
        if rest := len(found.difference(words)):
            notes[column] = (
                f"{rest} of {len(found)} words, the rarest, have no feature "
                "(--max-words 0 keeps all)"
            )
        return cls(columns, words, vectorizer.idf_, len(words), notes=notes)

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
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Keep elements that occur twice, the most frequent ones if there are many."""
        (column,) = columns
        values = present_texts(table.columns[column])
        # A column may be said to have sets that do not look like sets.
        marks = [mark for mark in ";|," if any(mark in value for value in values)]
        separator = guess_separator(values) or (marks[0] if marks else " ")
        cells = _split_cells(table, column, separator)
        counts = Counter(element for cell in cells for element in cell)
        elements = most_frequent(counts, options.max_categories)
        notes = {}
        if rare := [counts[each] for each in counts.keys() - set(elements)]:
            notes[column] = (
                f"{len(rare)} of {len(counts)} elements have no feature "
                f"({how_rare(rare)})"
            )
        grids = _fit_grids(np.array([*map(len, cells)]), options.encoding)
        return cls(columns, separator, elements, grids, notes=notes)

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
        rows[:, -1] = _encoded(np.array([*map(len, cells)]), self.grids)
        return rows


def _split_cells(table: Table, column: str, separator: str) -> list[list[str]]:
    texts = filled_texts(table.columns[column])
    return [split_set(text, separator) for text in texts]


@dataclass(frozen=True, eq=False)
class DateBlock(Block):
    """Dates of one column: a number of days, the month and the day of the week."""

    kind: ClassVar[str] = "date"

    grids: Floats | None
    """Quantiles of the days, ``[1, G]``; None for days since 1970 as they are."""

    @classmethod
    def fit(cls, table: Table, columns: list[str], options: "ImportOptions") -> Self:
        """Learn the quantiles."""
        days = _days(_dates(table, columns[0]))
        return cls(columns, _fit_grids(days, options.encoding))

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
