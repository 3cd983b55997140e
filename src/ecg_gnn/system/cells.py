"""Names in CSV files that no spreadsheet takes for a formula."""

import re
from typing import Any

# A number, such as a class -1, is none; a tab or a line's end may hide one.
_FORMULA = re.compile(r"'*(?![+-]?\d+(\.\d*)?([eE][+-]?\d+)?$)[=+\-@\t\r]", re.DOTALL)


def safe_cell(value: Any) -> Any:
    """A text with ``'`` before it if it, or what follows such marks, is a formula.

    Examples:
        >>> safe_cell("=1+1"), safe_cell("-1"), safe_cell("plain"), safe_cell(0.5)
        ("'=1+1", '-1', 'plain', 0.5)
    """
    if isinstance(value, str) and _FORMULA.match(value):
        return f"'{value}"
    return value


def text_of_cell(text: str) -> str:
    """The text that ``safe_cell`` was given.

    Examples:
        >>> text_of_cell(safe_cell("=1+1")), text_of_cell("'tis")
        ('=1+1', "'tis")
    """
    return text[1:] if safe_cell(text[1:]) == text else text
