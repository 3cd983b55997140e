"""How numbers are written on the pages."""

from ecg_gnn_lab.tables.document import Row, minus

NOTHING = "*Nothing has been run yet.*"


def signed(value: float | None) -> str:
    """A difference in points."""
    return "—" if value is None else minus(f"{value:+.2f}")


def score(row: Row, kind: str = "test") -> str:
    """Mean and standard deviation, of ours or of the paper's."""
    mean, std = row[f"{kind}_mean"], row[f"{kind}_std"]
    if mean is None:
        return "—"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def difference(row: Row, other: str) -> str:
    """A paired difference with its interval; bold where it is more than chance."""
    key = f"minus_{other}"
    if row[key] is None:
        return "—"
    low, high, p = (row[f"{key}_{end}"] for end in ("ci_low", "ci_high", "p_holm"))
    text = signed(row[key])
    if low is not None:
        text += f" [{signed(low)}, {signed(high)}]"
    return f"**{text}**" if p is not None and p < 0.05 else text


def cell_name(row: Row) -> str:
    """One cell: a dataset, a model, a variant."""
    return f"{row['dataset']}, {row['model']}, {row['label']}"
