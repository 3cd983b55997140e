"""Tables as named columns of cells: texts, numbers, dates, and missing values."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError, did_you_mean

Column = list[str | None] | NDArray[np.float64]
"""Texts as the file has them, or numbers where a file has numbers (NaN: missing)."""

Pairs = NDArray[np.int64]
"""Edges as pairs of node numbers, ``[E, 2]``."""

# As files write "no value"; a node may be called NA (Namibia), but not nothing or NaN.
_MISSING = frozenset(["", "na", "n/a", "nan", "null", "none"])

UNNAMED = "column_1"
"""What a first column without a name is called."""

_LEADING_ZERO = re.compile(r"0\d+")
_FLAGS = {"true": "1", "yes": "1", "false": "0", "no": "0"}

_BEGINS_LIKE_ISO = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_OTHER_DATES = (
    re.compile(r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})"),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
)

# Squares of larger numbers no longer fit, and no measurement is as large.
_LARGEST_NUMBER = 1e30

# Numbers as people write them: $1,234.50, 1.234,50 €, 85%, 0,5.
_UNIT = r"[$€£¥₹%]"
_WRITTEN = re.compile(
    rf"(?P<sign>[-+]?)\s*(?P<before>{_UNIT}?)\s*(?P<digits>\d[\d.,'’\xa0\u202f]*)"
    rf"\s*(?P<after>{_UNIT}?)"
)
_PLAIN = re.compile(r"[-+]?[\d.]*")
_WHOLE, _GROUPS = r"(0|[1-9]\d*)", r"[1-9]\d{{0,2}}([{}'’\xa0\u202f]\d{{3}})+"
_STYLES = {
    mark: re.compile(rf"({_WHOLE}|{_GROUPS.format(other)})({re.escape(mark)}\d+)?")
    for mark, other in ((".", ","), (",", "."))
}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, and the file they came from."""

    source: str
    columns: dict[str, Column]

    def __post_init__(self) -> None:
        for name, column in self.columns.items():
            # Each once: a column may repeat a long text that is in memory once.
            texts = () if isinstance(column, np.ndarray) else filter(None, column)
            every = "".join({name, *texts})
            # Arrays end at NUL, and UTF-8 has no half characters.
            if "\0" in every or every.encode("utf-8", "ignore").decode() != every:
                raise InputError(
                    f"{self.source}: {name!r} must be valid text, without NUL or "
                    "broken characters"
                )

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.columns.values()), []))

    def column(self, name: str, purpose: str) -> Column:
        """A column that must be there."""
        if name in self.columns:
            return self.columns[name]
        names = list(self.columns)
        hint = did_you_mean(name, names, alike=0.8)
        raise InputError(
            f"{self.source}: must have the column {name!r} of the {purpose} (got "
            f"{names[:8]}{and_more(names, 8)}{hint})"
        )

    def texts(self, name: str, purpose: str) -> list[str | None]:
        """A column as texts, None where there is no value."""
        return [text or None for text in filled_texts(self.column(name, purpose))]

    def names(self, name: str, purpose: str) -> list[str]:
        """A column of names of nodes: none may be missing."""
        texts = [as_text(value) for value in self.column(name, purpose)]
        for row, text in enumerate(texts, 1):
            if not text or (len(text) == 3 and text.lower() == "nan"):
                raise InputError(
                    f"{self.source}: {name!r} must have a value in every row (got none "
                    f"in row {row})"
                )
        return [text for text in texts if text]


def and_more(values: Collection[Any], shown: int) -> str:
    """How a list of the first ones goes on in a sentence."""
    return f" and {len(values) - shown} more" if len(values) > shown else ""


def as_text(value: str | float | None) -> str | None:
    """A cell as a text without spaces around it; whole numbers without a point."""
    if value is None or isinstance(value, str):
        return value and value.strip()
    if np.isnan(value):
        return None
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def is_missing(text: str | None) -> bool:
    """Whether a text stands for no value."""
    return text is None or text.strip().lower() in _MISSING


def filled_texts(column: Column) -> list[str]:
    """The texts of a column, the empty one where there is no value."""
    texts = [as_text(value) for value in column]
    return ["" if text is None or is_missing(text) else text for text in texts]


def present_texts(column: Column) -> list[str]:
    """The texts of a column, without the missing ones."""
    return [text for text in filled_texts(column) if text]


def mark_missing(
    table: Table, columns: Collection[str], texts: Collection[str]
) -> Table:
    """The same table, without a value where a cell of ``columns`` is in ``texts``."""
    if not texts:
        return table
    none = {text.strip().lower() for text in texts}
    changed: dict[str, Column] = {}
    for name in columns:
        column = table.column(name, "features")
        missing = [(as_text(value) or "").lower() in none for value in column]
        if isinstance(column, np.ndarray):
            changed[name] = np.where(missing, np.nan, column)
        else:
            pairs = zip(column, missing, strict=True)
            changed[name] = [None if gone else value for value, gone in pairs]
    return Table(table.source, table.columns | changed)


def parse_numbers(column: Column) -> NDArray[np.float64] | None:
    """Numbers with NaN where there is no value; None if some text is no number.

    True and yes are 1, false and no are 0.
    """
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    cells = ["nan" if is_missing(text) else str(text) for text in column]
    try:
        plain = [_FLAGS.get(cell.strip().lower(), cell) for cell in cells]
        return np.array(plain, dtype=np.float64)
    except ValueError:
        return None


def are_row_numbers(column: Column) -> bool:
    """Whether a column counts its rows, as the index that pandas writes."""
    numbers = parse_numbers(column)
    if numbers is None or not len(numbers):
        return False
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def numeric_column(table: Table, name: str) -> NDArray[np.float64]:
    """A column that must be numbers."""
    values = parse_numbers(table.columns[name])
    if values is None:
        row, text = first_non_number(table.columns[name])
        raise InputError(
            f"{table.source}: {name!r} must be numbers (got {text!r:.60} in row {row})"
        )
    wrong = np.isinf(values) | (np.abs(values) > _LARGEST_NUMBER)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{table.source}: {name!r} must be numbers up to {_LARGEST_NUMBER:g} (got "
            f"{values[row]} in row {row + 1})"
        )
    return values


def has_leading_zeros(column: Column) -> bool:
    """Whether some texts are whole numbers that begin with a zero, as codes do."""
    if isinstance(column, np.ndarray):
        return False
    return any(_LEADING_ZERO.fullmatch(text.strip()) for text in column if text)


def first_non_number(column: Column) -> tuple[int, str]:
    """The first cell that is no number, with its row, counted from one."""
    texts = enumerate(map(str, column), 1)
    return next(each for each in texts if parse_numbers([each[1]]) is None)


def decimal_mark(column: Column) -> str | None:
    """What separates the fractions of written numbers; None where numbers are plain.

    Also None for what is no number, and for amounts of several currencies.

    Examples:
        >>> decimal_mark(["1,5", "12", None]), decimal_mark(["$1,500", "$12.5"])
        (',', '.')
    """
    if isinstance(column, np.ndarray):
        return None
    texts = present_texts(column)
    found = [match for text in texts if (match := _WRITTEN.fullmatch(text))]
    if len(found) < len(texts) or all(map(_PLAIN.fullmatch, texts)):
        return None
    units = {match["before"] + match["after"] for match in found} - {""}
    digits = [match["digits"] for match in found]
    fitting = (m for m, style in _STYLES.items() if all(map(style.fullmatch, digits)))
    return next(fitting, None) if len(units) < 2 else None


def plain_numbers(column: Column, mark: str | None) -> Column:
    """The same column with plain numbers; what is no written number stays.

    Examples:
        >>> plain_numbers(["1.234,5 €", "-85", "?"], ",")
        ['1234.5', '-85', '?']
    """
    if mark is None or isinstance(column, np.ndarray):
        return column

    def plain(text: str | None) -> str | None:
        match = _WRITTEN.fullmatch((text or "").strip())
        if match is None or not _STYLES[mark].fullmatch(match["digits"]):
            return text
        digits = re.sub(rf"[^\d{mark}]", "", match["digits"])
        return match["sign"] + digits.replace(mark, ".")

    return [plain(text) for text in column]


def parse_date(text: str) -> datetime | None:
    """A date or time as ISO writes it, YYYY/MM/DD or DD.MM.YYYY; else None.

    A time zone is converted to UTC.

    Examples:
        >>> parse_date("24.12.2023") == parse_date("2023-12-24T01:00+01:00")
        True
    """
    try:
        if _BEGINS_LIKE_ISO.match(text):
            date = datetime.fromisoformat(text)
            return date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date
        for form in _OTHER_DATES:
            if found := form.fullmatch(text):
                year, month, day = map(int, found.group("year", "month", "day"))
                return datetime(year, month, day)
    except (ValueError, OverflowError):  # such as 31 February, or before the year 1
        pass
    return None
