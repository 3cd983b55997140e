"""Dates in the forms that tables have."""

import re
from datetime import UTC, datetime

_BEGINS_LIKE_ISO = re.compile(r"\d{4}-\d\d-\d\d(?!\d)")
_PARTS = ("year", "month", "day")
_OTHER_FORMS = (
    re.compile(r"(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})"),
    re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
)


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
        for form in _OTHER_FORMS:
            if found := form.fullmatch(text):
                year, month, day = (int(found[part]) for part in _PARTS)
                return datetime(year, month, day)
    except (ValueError, OverflowError):  # such as 31 February, or before the year 1
        pass
    return None
