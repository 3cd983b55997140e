"""Tables of texts, with names that no spreadsheet computes and no browser runs."""

import re
from typing import Any

# A number, such as a class -1, is none; a tab or a line's end may hide one, and wide
# signs are as good as others where Japanese is written.
_NUMBER = r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?$"
_SIGNS = r"=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20"
_FORMULA = re.compile(rf"'*(?!{_NUMBER})[{_SIGNS}]", re.DOTALL)
_MAX_PARTS = 12  # of a dictionary in one line
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


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


Table = tuple[list[str], list[list[str]]]
"""A header, and rows of as many cells."""


def markdown(table: Table) -> str:
    """A table in Markdown."""
    header, rows = table
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def without_html(markdown: str) -> str:
    """Markdown in which every tag is shown instead of run.

    Examples:
        >>> without_html("p <0.001 of <script>")
        'p <0.001 of &lt;script>'
    """
    return _TAG.sub("&lt;", markdown)


def value_text(value: Any) -> str:
    """A plain value as people read it; of a dictionary, the first entries."""
    if isinstance(value, dict):
        parts = [f"{key} {value_text(part)}" for key, part in value.items()]
        more = len(parts) - _MAX_PARTS
        rest = f", and {more} more" if more > 0 else ""
        return ", ".join(parts[:_MAX_PARTS]) + rest
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    if value is None:
        return "undefined"
    return f"{value:,}" if isinstance(value, int) else str(value)
