"""What the blocks of the pages share: tables made once, and how numbers are written."""

from functools import cache

from ecg_gnn.study import Store
from ecg_gnn_lab.tables import StudyTables
from ecg_gnn_lab.tables.document import Row, difference_text, signed_text, within_spread

NOTHING = "*Nothing has been run yet.*"


@cache
def tables(store: Store) -> StudyTables:
    """The paper's tables of the records, made once for all pages."""
    return StudyTables(store)


def signed(value: float | None) -> str:
    """A difference in points."""
    return signed_text(value, none="—")


def gap_text(gap: float | None, *spreads: float | None) -> str:
    """A difference from a published mean; if the splits differ by more, it says so."""
    near = within_spread(gap, *spreads)
    return f"{signed(gap)} (within one standard deviation)" if near else signed(gap)


def difference(row: Row, other: str) -> str:
    """A paired difference with its interval; bold where it is more than chance."""
    p = row[f"minus_{other}_p_holm"]
    text = difference_text(row, f"minus_{other}") or "—"
    return f"**{text}**" if p is not None and p < 0.05 else text


def cell_name(row: Row) -> str:
    """One cell: a dataset, a model, a variant."""
    return f"{row['dataset']}, {row['model']}, {row['label']}"
