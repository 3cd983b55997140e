"""Our best beside the best published, from the leaderboard table."""

from collections.abc import Sequence

from cached import table
from wording import NOTHING, score, signed

from ecg_gnn.study import Store
from ecg_gnn.study.table import markdown
from ecg_gnn_lab.paper.published import num_splits
from ecg_gnn_lab.tables.document import Row
from ecg_gnn_lab.tables.leaderboard import boards

_MOST_ROWS = 8
"""Of ours in a dataset's part of the page; the table has all of them."""


def leaders_block(store: Store) -> str:
    """A line per dataset: what validation chose of ours, and the best of others."""
    lines = []
    for board in boards(table("leaderboard", store).rows):
        ours = next(row for row in board if row["best_on_validation"])
        line = [
            ours["dataset"],
            ours["model"],
            score(ours),
            _splits(ours),
            *_best(board),
        ]
        lines.append([*line, signed(ours["best_published_difference"])])
    if not lines:
        return NOTHING
    header = ["", "our best, chosen on validation", "ours", "splits"]
    header += ["best published", "published", "ours − published"]
    return markdown((header, lines))


def leaderboard_block(store: Store) -> str:
    """The first rows of every dataset, and the best published result among them."""
    lines = []
    for board in boards(table("leaderboard", store).rows):
        ours = [row for row in board if row["kind"] == "ours"][:_MOST_ROWS]
        for row in board:
            if row["kind"] == "ours" and row not in ours:
                continue
            name = f"{row['model']} *" if row["best_on_validation"] else row["model"]
            line = [row["dataset"], name, score(row), score(row, "published")]
            line += [signed(row["published_difference"]), _splits(row)]
            lines.append(line)
    if not lines:
        return NOTHING
    header = ["dataset", "model", "ours", "published", "ours − published", "splits"]
    return markdown((header, lines))


def _best(board: Sequence[Row]) -> list[str]:
    best = [row for row in board if row["kind"] == "published"]
    known = [row for row in best if row["published_mean"] is not None]
    if not known:
        return ["none with these features" if best else "none", "—"]
    names = [row["model"].partition(": ")[2] for row in known]
    return [", ".join(names), score(known[0], "published")]


def _splits(row: Row) -> str:
    if row["splits"] is None:
        return ""
    found, wanted = row["splits"], num_splits()
    return str(found) if found >= wanted else f"{found} of {wanted}"
