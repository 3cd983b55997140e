"""Graph statistics as records keep them."""

import math
from collections.abc import Mapping, Sequence

Statistics = dict[str, float | int | None]


def plain(statistics: Mapping[str, float | int]) -> Statistics:
    """JSON has no NaN: what is undefined is null."""
    return {
        key: None if math.isnan(value) else value for key, value in statistics.items()
    }


def mean(rows: Sequence[Statistics]) -> Statistics:
    """Mean of every statistic; undefined if it is so in any row."""
    found: Statistics = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        defined = [value for value in values if value is not None]
        whole = len(defined) == len(values)
        found[key] = sum(defined) / len(defined) if whole else None
    return found
