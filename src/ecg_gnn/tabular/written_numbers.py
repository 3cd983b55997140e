"""Numbers as people write them: $1,234.50, 1.234,50 €, 85%, 0,5."""

import re

import numpy as np

from ecg_gnn.tabular.columns import Column, present_texts

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
    if not all(map(_WRITTEN.fullmatch, texts)) or all(map(_PLAIN.fullmatch, texts)):
        return None
    found = [match for text in texts if (match := _WRITTEN.fullmatch(text))]
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
