"""The feature block of dates."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

import numpy as np

from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.column_kinds import Kind
from ecg_gnn.tabular.columns import Table, filled_texts
from ecg_gnn.tabular.dates import days_since_1970, parse_date
from ecg_gnn.tabular.feature_blocks import Block, Features, are_grids
from ecg_gnn.tabular.quantiles import Floats, fit_grid, to_normal

_MONTHS = range(1, 13)
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, eq=False)
class DateBlock(Block):
    """Dates of one column: a number of days, the month and the day of the week."""

    kind: ClassVar[Kind] = "date"

    grids: Floats | None
    """Quantiles of the days, ``[1, G]``; None for days since 1970 as they are."""

    @classmethod
    def fit(cls, table: Table, column: str, *, encoding: str) -> "DateBlock":
        """Learn the quantiles."""
        days = _days(_dates(table, column))
        return cls([column], fit_grid(days)[None] if encoding != "raw" else None)

    def names(self) -> list[str]:
        """Days, whether they are missing, months, days of the week."""
        (column,) = self.columns
        parts = [*(f"month={each}" for each in _MONTHS), *_WEEKDAYS]
        return [column, f"{column} is missing", *(f"{column} {p}" for p in parts)]

    def transform(self, table: Table) -> Features:
        """Months and days of the week are 0 or 1; a missing date has none."""
        dates = _dates(table, self.columns[0])
        days = _days(dates)
        rows = np.zeros((len(dates), len(self.names())), dtype=np.float32)
        if self.grids is None:
            rows[:, 0] = np.nan_to_num(days)
        else:
            rows[:, 0] = to_normal(days, self.grids[0])
        rows[:, 1] = np.isnan(days)
        for row, date in zip(rows, dates, strict=True):
            if date is not None:
                row[1 + date.month] = row[2 + len(_MONTHS) + date.weekday()] = 1
        return rows

    def is_sound(self) -> bool:
        """Whether there is one column with its quantiles."""
        has_grid = self.grids is None or are_grids(self.grids, 1)
        return super().is_sound() and len(self.columns) == 1 and has_grid


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
    return np.array([np.nan if d is None else days_since_1970(d) for d in dates])
