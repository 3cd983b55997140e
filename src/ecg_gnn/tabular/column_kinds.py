"""What kind of values a column has: recognised, and said why."""

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from shlex import quote
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.tabular.columns import (
    Column,
    are_row_numbers,
    has_leading_zeros,
    parse_date,
    parse_numbers,
    present_texts,
)

_KIND_WORDS = {
    "numeric": "as numbers",
    "categorical": "as categories",
    "ordinal": "as numbers and as categories",
    "set": "as sets",
    "date": "as dates",
    "text": "as text",
}
KINDS = tuple(_KIND_WORDS)
NO_VALUES = "no values"
WORD = re.compile(r"(?u)\b\w+\b")

# Texts with at least this many words on average are read word by word.
_MIN_WORDS_OF_TEXT = 3.0
# A column is one of names if this share of its values occurs once.
_NAME_SHARE = 0.9
_FEW_VALUES = 20
# Amounts are hardly ever the same twice and a few are very large, or are rounded.
_AMOUNT_SHARE, _LARGE = 0.5, 10
_ROUNDED_TO = 100

# On real columns quantities have ratios of 0.9 to 1.15, codes of 1.3 to 7.
_MIN_CODE_RATIO = 1.25
# Ages that people round differ by five or ten more often than by one.
_LAGS = (1, 5, 10)
_MIN_CODE_DEVIATIONS = 3.0
_MAX_ORDINAL_VALUES = 12
_MIN_ROWS_PER_ORDINAL = 4
# Counts (of posts, of visits) become rarer from one value to the next.
_FALLING_VALUES = 6

# What separates the elements of a set, and how many a cell must have on average: marks
# that sentences do not have are a stronger sign.
JSON_LIST = "json"
_SEPARATORS = {";": 1.3, "|": 1.3, ",": 1.3, " ": 2.0}
# Fewer elements between commas must be combined freely, unlike "Oslo, Norway".
_MANY_BETWEEN_COMMAS = 2.0
_MIN_COMPANIES = 1.5
_MIN_SETS = 10
_MAX_SAMPLE = 2000  # cells that are looked at
_MIN_ROWS_PER_ELEMENT = 2.0
_MAX_ELEMENT_LENGTH = 40
_MAX_ELEMENT_WORDS = 3
_LONG_SHARE = 0.05  # of elements, that may have more words
_HAS_DIGIT = re.compile(r"\d")
# One number, not two elements: 1,5 and 1.234,5 in many countries, and 1,234,567.
_NUMBER_WITH_COMMAS = re.compile(
    r"-?\d+(,\d+)?|-?\d{1,3}(\.\d{3})+(,\d+)?|-?\d{1,3}(,\d{3})+(\.\d+)?"
)
# A place, not a set: 33.5,-65.
_PAIR_OF_NUMBERS = re.compile(r"[+-]?\d+(\.\d+)?\s*[,;]\s*[+-]?\d+(\.\d+)?")


@dataclass(frozen=True)
class Guess:
    """The kind of a column, or None and why nothing can be learned from it."""

    kind: str | None
    why: str = ""
    """Empty where the kind is obvious."""
    otherwise: str = "numeric"
    """What else the column might be."""

    def explain(self, name: str) -> str:
        """What was decided about a column, and the option that overrules it."""
        assert self.kind is not None
        return (
            f"{self.why}, read {_KIND_WORDS[self.kind]}; --{self.otherwise} "
            f"{quote(name)} reads them {_KIND_WORDS[self.otherwise]}"
        )


def guess_kind(column: Column) -> Guess:
    """The kind of a column."""
    values = present_texts(column)
    if not values:
        return Guess(None, NO_VALUES)
    counts = Counter(values)
    distinct = len(counts)
    if distinct == 1 and len(values) == len(column):
        return Guess(None, "constant")
    numbers = parse_numbers(column)
    are_codes = numbers is not None and has_leading_zeros(column)
    if distinct > _FEW_VALUES and are_row_numbers(column):
        return Guess(None, "the number of the row")
    if numbers is not None and not are_codes:
        return _guess_numbers(numbers[~np.isnan(numbers)])
    are_names = distinct > _FEW_VALUES and _share_of_single(counts) >= _NAME_SHARE
    if are_codes and not are_names:
        return Guess("categorical", f"{distinct} codes with leading zeros")
    if all(parse_date(value) is not None for value in values):
        return Guess("date", f"{distinct} different dates", "categorical")
    are_pairs = all(map(_PAIR_OF_NUMBERS.fullmatch, values))
    if are_pairs and not all(map(_NUMBER_WITH_COMMAS.fullmatch, values)):
        return Guess(None, "two numbers in a cell, to be split into two columns")
    if guess_separator(values):
        return Guess("set", "several elements in a cell", "text")
    words = float(np.mean([len(WORD.findall(value)) for value in values]))
    if words >= _MIN_WORDS_OF_TEXT:
        return Guess("text")
    if are_names:
        return Guess(None, "a different value in nearly every row")
    return Guess("categorical")


def _share_of_single(counts: Counter[Any]) -> float:
    """The share of rows whose value no other row has."""
    return sum(n == 1 for n in counts.values()) / counts.total()


# --- Numbers --------------------------------------------------------------------------


def _guess_numbers(values: NDArray[np.float64]) -> Guess:
    counts = Counter(values.tolist())
    whole = all(value.is_integer() for value in counts)  # infinity is not
    if not whole or len(counts) <= 2:
        return Guess("numeric")
    few = len(counts) <= _MAX_ORDINAL_VALUES
    if few and len(values) >= _MIN_ROWS_PER_ORDINAL * len(counts):
        return Guess("ordinal", f"{len(counts)} different whole numbers")
    if not looks_like_codes(counts):
        return Guess("numeric")
    are_amounts = _are_amounts(counts)
    if are_amounts or _falls(counts):
        why = f"{len(counts)} different {'amounts' if are_amounts else 'counts'}"
        return Guess("numeric", why, "categorical")
    return Guess("categorical", f"{len(counts)} integer codes")


def looks_like_codes(counts: Counter[float]) -> bool:
    """Whether whole numbers are names (of dormitories, of schools), not quantities.

    A quantity is as often the same in two rows as it differs by one up or down, a name
    much more often.

    Examples:
        >>> looks_like_codes(Counter({107: 30, 108: 2, 111: 25, 250: 40, 251: 1}))
        True
        >>> looks_like_codes(Counter({20: 20, 21: 27, 22: 33, 23: 30, 24: 24}))
        False
    """
    # Where nothing happened is zero, or a questionnaire's largest value: not a code.
    (mode, _), *_ = counts.most_common(1)
    if mode in (min(counts), max(counts)) and len(counts) > _MAX_ORDINAL_VALUES:
        counts = Counter({value: n for value, n in counts.items() if value != mode})
    step = math.gcd(*(int(value - mode) for value in counts))
    equal = sum(n * (n - 1) / 2 for n in counts.values())
    expected = max(
        sum(n * counts.get(value + lag * step, 0) for value, n in counts.items()) / 2
        for lag in _LAGS
    )
    ratio = (equal + 0.5) / (expected + 0.5)
    deviations = (equal - expected) / math.sqrt(equal + expected / 2 + 1)
    return ratio >= _MIN_CODE_RATIO and deviations >= _MIN_CODE_DEVIATIONS


def _are_amounts(counts: Counter[float]) -> bool:
    """Whether few values come again, or most are rounded, as money is."""
    usual = median(counts.elements())
    if _share_of_single(counts) > _AMOUNT_SHARE and max(counts) > _LARGE * usual:
        return True
    step = math.gcd(*map(int, counts))
    to = _ROUNDED_TO * step
    rounded = sum(n for value, n in counts.items() if value and value % to == 0)
    return rounded > _AMOUNT_SHARE * counts.total()


def _falls(counts: Counter[float]) -> bool:
    """Whether the first values, from 0 or 1, become rarer, up to chance.

    Differences have values below zero, too, and -9 may mean missing.
    """
    first = sorted(value for value in counts if value >= 0)[:_FALLING_VALUES]
    sizes = [counts[value] for value in first]
    return (
        first[:1] in ([0], [1])
        and first[-1] - first[0] == _FALLING_VALUES - 1
        and all(m + math.sqrt(m + n) >= n for m, n in pairwise(sizes))
    )


# --- Sets -----------------------------------------------------------------------------


def split_set(text: str, separator: str) -> list[str]:
    """The different elements of one cell, in the order of the cell."""
    if separator == JSON_LIST:
        parts = _json_elements(text) or []
    else:
        parts = text.split(separator if separator != " " else None)
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def guess_separator(values: list[str]) -> str | None:
    """What separates elements in these cells; None if they are not sets."""
    if all(_json_elements(value) is not None for value in values):
        return JSON_LIST
    if len(values) < _MIN_SETS or all(map(_NUMBER_WITH_COMMAS.fullmatch, values)):
        return None
    values = values[:: math.ceil(len(values) / _MAX_SAMPLE)]
    for separator, fewest in _SEPARATORS.items():
        cells = [split_set(value, separator) for value in values]
        if sum(map(len, cells)) >= fewest * len(cells) and _are_sets(cells, separator):
            return separator
    return None


def _are_sets(cells: list[list[str]], separator: str) -> bool:
    """Whether elements are short and come again, unlike parts of sentences."""
    counts = Counter(element for cell in cells for element in cell)
    if counts.total() < _MIN_ROWS_PER_ELEMENT * len(counts):
        return False
    if max(map(len, counts)) > _MAX_ELEMENT_LENGTH:
        return False
    if separator == " ":  # words between spaces are text, numbers and ids are not
        return all(map(_HAS_DIGIT.search, counts))
    if separator == "," and counts.total() < _MANY_BETWEEN_COMMAS * len(cells):
        companies = sum(map(len, {frozenset(cell) for cell in cells}))
        if companies < _MIN_COMPANIES * len(counts):
            return False
    long = sum(len(element.split()) > _MAX_ELEMENT_WORDS for element in counts)
    return long <= _LONG_SHARE * len(counts)


def _json_elements(text: str) -> list[str] | None:
    """The elements of a JSON list of plain values; None if the text is none."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        elements = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not all(isinstance(each, str | int | float | None) for each in elements):
        return None
    return [str(each) for each in elements if each is not None]
