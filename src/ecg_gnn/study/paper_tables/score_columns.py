"""How people read a row of scores."""

from collections.abc import Callable

from ecg_gnn.study.paper_tables.document import Column, Row, minus, text

RIVALS = ("baseline", "identity")
"""What every ECG row is compared with."""


def score_columns(mark_best: bool) -> list[Column]:
    """Scores, published ones, and paired differences with what chance allows."""

    def label(row: Row) -> str:
        best = mark_best and row["best_on_validation"]
        return f"{row['label']} *" if best else str(row["label"])

    columns = [
        Column("dataset", text("dataset")),
        Column("model", text("model")),
        Column("variant", label),
        Column("n", text("units")),
        Column("ours (%)", lambda row: score_text(row, "test")),
        Column("published (%)", lambda row: score_text(row, "published")),
        Column("ours − published", lambda r: signed_text(r["published_difference"])),
    ]
    for other in RIVALS:
        columns += [
            Column(f"− {other} [95% CI]", _difference(f"minus_{other}")),
            Column("p Holm (Wilcoxon)", _p_values(f"minus_{other}")),
        ]
    return columns


def score_text(row: Row, kind: str) -> str:
    """Mean and standard deviation of one kind, ``test`` or ``published``."""
    mean, std = row[f"{kind}_mean"], row[f"{kind}_std"]
    if mean is None:
        return "—"
    return f"{mean:.2f}" if std is None else f"{mean:.2f} ± {std:.2f}"


def signed_text(value: float | None) -> str:
    """A difference in points; nothing where there is none."""
    return "" if value is None else minus(f"{value:+.2f}")


def _difference(key: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        low, high = row[f"{key}_ci_low"], row[f"{key}_ci_high"]
        interval = "" if low is None else f" [{signed_text(low)}, {signed_text(high)}]"
        return signed_text(row[key]) + interval

    return show


def _p_values(key: str) -> Callable[[Row], str]:
    def show(row: Row) -> str:
        holm, wilcoxon = row[f"{key}_p_holm"], row[f"{key}_p_wilcoxon"]
        return "" if holm is None else f"{_p(holm)} ({_p(wilcoxon)})"

    return show


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else f"{p:.3f}"
