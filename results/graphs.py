"""Statistics of the graphs: ours, the paper's, and which of them agree."""

from cached import table

from ecg_gnn.study import Store
from ecg_gnn.study.statistics import STATISTICS
from ecg_gnn.study.table import markdown
from ecg_gnn_lab.tables.document import Row, minus

NEAR = 0.02
"""How far a statistic may be from the paper's, which has two decimals."""


def statistics_block(store: Store) -> str:
    """Homophily before and after, and what the paper has of it."""
    document = table("statistics", store)
    found = [_agreement(row) for row in document.rows]
    lines = [f"- {text}" for text in found if text is not None]
    text = markdown((document.titles(), document.cells()))
    if not lines:
        return text
    within = f"Within {NEAR} of the paper, edges and every statistic that it lists:"
    return "\n".join([text, "", within, "", *lines])


def _agreement(row: Row) -> str | None:
    """How many statistics of a graph are the paper's; None where it has none."""
    keys = [key for key in STATISTICS if row[f"paper_{key}"] is not None]
    if not keys:
        return None
    far = [key for key in keys if not _near(row, key)]
    text = f"{row['dataset']}, {row['graph']}: {len(keys) - len(far)} of {len(keys)}"
    if far:
        text += f"; not {', '.join(_apart(row, key) for key in far)}"
    return text


def _near(row: Row, key: str) -> bool:
    difference = row[f"{key}_difference"]
    # A count must be the same; what lies on the border of two decimals is near.
    most = 0 if key == "num_edges" else NEAR + 1e-9
    return difference is not None and abs(difference) <= most


def _apart(row: Row, key: str) -> str:
    paper = row[f"paper_{key}"]
    ours = "undefined" if row[key] is None else minus(f"{row[key]:.3f}")
    return f"{STATISTICS[key]} ({ours} against {minus(f'{paper:.2f}')})"
