"""What a column is: numbers, categories, text, or nothing to learn from."""

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.tables import Column, as_text, is_missing

Kind = Literal["numeric", "categorical", "text"]
NO_VALUES = "no values"
KINDS: tuple[Kind, ...] = ("numeric", "categorical", "text")

# Beyond it squares no longer fit, and no measurement is as large.
_LARGEST = 1e30
# Texts with at least so many words on average are read word by word.
_WORDS_OF_TEXT = 3.0
# More different values than this share of the rows is a name, not a category.
_NAME_SHARE = 0.5
_FEW_VALUES = 20

WORD = re.compile(r"(?u)\b\w+\b")


def guess_kind(column: Column) -> Kind | str:
    """The kind of a column, or the reason why it tells nothing."""
    values = present_texts(column)
    if not values:
        return NO_VALUES
    distinct = len(set(values))
    if parse_numbers(column) is not None:
        return "numeric" if distinct > 1 or len(values) < len(column) else "constant"
    if distinct == 1 and len(values) == len(column):
        return "constant"
    words = float(np.mean([len(WORD.findall(value)) for value in values]))
    if words >= _WORDS_OF_TEXT:
        return "text"
    if distinct > max(_FEW_VALUES, _NAME_SHARE * len(values)):
        return "a different value in nearly every row"
    return "categorical"


def present_texts(column: Column) -> list[str]:
    """The values of a column as texts, without the missing ones."""
    texts = [as_text(value) for value in column]
    return [text for text in texts if text is not None and not is_missing(text)]


def parse_numbers(column: Column) -> NDArray[np.float64] | None:
    """Numbers with NaN where there is no value; None if some text is no number."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    cells = ["nan" if is_missing(text) else str(text) for text in column]
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        return None


def numbers_of(source: str, name: str, column: Column) -> NDArray[np.float64]:
    """Numbers of a column that must be numeric."""
    values = parse_numbers(column)
    if values is None:
        row, text = first_text(column)
        raise InputError(
            f"{source}: {name!r} must be numbers (got {text!r:.60} in row {row})"
        )
    wrong = np.isinf(values) | (np.abs(values) > _LARGEST)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"{source}: {name!r} must be numbers up to {_LARGEST:g} (got {values[row]} "
            f"in row {row + 1})"
        )
    return values


def texts_of(column: Column) -> list[str]:
    """Texts of a column, the empty one where there is no value."""
    texts = [as_text(value) for value in column]
    return ["" if text is None or is_missing(text) else text for text in texts]


def first_text(column: Sequence[str | None] | NDArray[np.float64]) -> tuple[int, str]:
    """The first cell that is no number, and its row, counted from one."""
    for row, text in enumerate(column, 1):
        if not is_missing(str(text)) and parse_numbers([str(text)]) is None:
            return row, str(text)
    raise AssertionError("every cell is a number")
