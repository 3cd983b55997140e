"""Ours beside published numbers: the paper's cells and graphs, the best of others."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from quoting import NOTHING, cell_name, gap_text, signed, tables

from ecg_gnn.config.identity import LABELS
from ecg_gnn.study import Cell, Store
from ecg_gnn.study.records import STATISTICS
from ecg_gnn.system.canvas import minus
from ecg_gnn.system.cells import markdown
from ecg_gnn_lab import published
from ecg_gnn_lab.report.details import varied_settings
from ecg_gnn_lab.tables.document import Row, plain_text, score_text, starred
from ecg_gnn_lab.tables.ranking import BEST, boards

BAR = 1.0
"""Points that a mean may be away from the paper's; an ECG mean may be any above."""
NEAR = 0.02
"""How far a statistic may be from the paper's, which has two decimals."""
_MOST_ROWS = 8
"""Of ours in a dataset's part of the page; the table has all of them."""
_GAP = ("published_difference", "test_std", "published_std")


def compared(store: Store) -> list[Row]:
    """Rows that the paper has a number for: plain models, and every embedding.

    Models that it only quotes have a number of other code: see the leaderboard.
    """
    results = tables(store)["results"].rows
    rows = [row for row in results if row["variant"] == "baseline"]
    rows += [row for row in tables(store)["embeddings"].rows if row["variant"] == "ecg"]
    order = [(row["dataset"], row["model"]) for row in results]
    return sorted(
        (row for row in rows if row["published_source"] == published.PAPER),
        key=lambda row: order.index((row["dataset"], row["model"])),
    )


def reached(row: Row) -> bool:
    """Whether a plain model is near the paper's, and an ECG model not far below it."""
    if row["variant"] == "baseline":
        return bool(abs(row["published_difference"]) <= BAR)
    return bool(row["published_difference"] >= -BAR)


def missed(store: Store) -> list[Row]:
    """Cells that are not where the paper's are."""
    return [row for row in compared(store) if not reached(row)]


def paper_block(store: Store) -> str:
    """How many cells are where they should be, and all of them."""
    rows = compared(store)
    if not rows:
        return NOTHING
    header = ["dataset", "model", "variant", "n", "ours", "paper", "ours − paper"]
    cells = [
        [
            row["dataset"],
            row["model"],
            row["label"],
            str(row["units"]),
            score_text(row),
            score_text(row, "published_mean"),
            signed(row["published_difference"]),
            "reached" if reached(row) else "**missed**",
        ]
        for row in rows
    ]
    said = f"{_counted(rows)}{_run_again(store, rows)}"
    return f"{said}\n\n{markdown(([*header, 'bar'], cells))}"


def _counted(rows: Sequence[Row]) -> str:
    plain = [row for row in rows if row["variant"] == "baseline"]
    ecg = [row for row in rows if row["variant"] == "ecg"]
    text = (
        f"**{sum(map(reached, plain))} of {len(plain)} plain models are within "
        f"{BAR:.1f} point of the paper's mean"
    )
    if ecg:
        text += (
            f"; {sum(map(reached, ecg))} of {len(ecg)} ECG models are not more than "
            f"{BAR:.1f} point below it"
        )
    far = max(rows, key=lambda row: abs(row["published_difference"]))
    away = signed(far["published_difference"])
    return f"{text}.** Furthest away: {cell_name(far)}, {away}."


def _run_again(store: Store, rows: Sequence[Row]) -> str:
    """Which cells reach the bar, but missed it with other settings."""
    cells = _cells(store)
    found = [
        f"{cell_name(row)} ({signed(gap)} with {setting})"
        for row in filter(reached, rows)
        for setting, _, _, gap in _tries(cells, row)
        if row["variant"] == "ecg" and gap < -BAR
    ]
    if not found:
        return ""
    return (
        " Run again because the first settings missed the bar, and counted with those "
        f"that validation prefers: {'; '.join(found)}."
    )


def _cells(store: Store) -> dict[str, Cell]:
    return {
        each.chosen.configuration.id: each for each in tables(store).selection.cells
    }


def tried_block(store: Store) -> str:
    """For cells that miss the bar, every setting that was run."""
    rows = missed(store)
    if not rows:
        return "No cell that has been run misses its bar."
    cells = _cells(store)
    lines = [
        [cell_name(row), setting, f"{val:.2f}", f"{test:.2f}", signed(gap)]
        for row in rows
        for setting, val, test, gap in _tries(cells, row)
    ]
    header = ["cell", "settings", "validation", "test", "ours − paper"]
    return markdown((header, lines))


class _Try(NamedTuple):
    settings: str
    val: float
    test: float
    gap: float


def _tries(cells: Mapping[str, Cell], row: Row) -> list[_Try]:
    """Every configuration of a cell: what tells it apart, and its scores."""
    cell, paper = cells[row["configuration"]], row["published_mean"]
    tries = []
    for candidate, shown in zip(cell.candidates, varied_settings(cell), strict=True):
        val, test = 100 * candidate.val_mean, 100 * candidate.test_mean
        tries.append(_Try(shown or "one only", val, test, test - paper))
    return tries


def statistics_block(store: Store) -> str:
    """Homophily before and after, and what the paper has of it."""
    document = tables(store)["statistics"]
    agreements = [_agreement(row) for row in document.rows]
    lines = [f"- {text}" for text in agreements if text is not None]
    text = markdown(document.texts())
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
    if row[key] is None:
        return False
    # A count must be the same; what lies on the border of two decimals is near.
    most = 0 if key == "num_edges" else NEAR + 1e-9
    return abs(row[key] - row[f"paper_{key}"]) <= most


def _apart(row: Row, key: str) -> str:
    paper = row[f"paper_{key}"]
    ours = "undefined" if row[key] is None else minus(f"{row[key]:.3f}")
    return f"{STATISTICS[key]} ({ours} against {minus(f'{paper:.2f}')})"


def leaders_block(store: Store) -> str:
    """A line per dataset: what validation chose of ours, and the best of others.

    Ours with labels as input have a line of their own, beside nothing published.
    """
    lines = []
    for board in boards(tables(store)["leaderboard"].rows):
        ours = next(row for row in board if row["best_on_validation"])
        others = [row for row in board if row["kind"] == "published"]
        names = [row["model"].removeprefix(BEST) for row in others]
        line = [ours["dataset"], *_ours(ours)]
        line += [", ".join(names) or "none"]
        line += [score_text(others[0], "published_mean") if others else "—"]
        spreads = ours["test_std"], *(row["published_std"] for row in others[:1])
        gap = ours["best_published_difference"]
        lines.append([*line, gap_text(gap, *spreads)])
        given = [row for row in board if LABELS in (row.get("options") or "")]
        if given:
            most = max(row["val_mean"] for row in given)
            row = next(row for row in given if row["val_mean"] == most)
            line = [ours["dataset"], *_ours(row)]
            lines.append([*line, "labels are no input there", "—", "—"])
    if not lines:
        return NOTHING
    header = ["", "our best, chosen on validation", "ours", "splits"]
    header += ["best published", "published", "ours − published"]
    return markdown((header, lines))


def _ours(row: Row) -> list[str]:
    return [row["model"], score_text(row), str(row["splits"])]


def leaderboard_block(store: Store) -> str:
    """The first rows of every dataset, and the best published result among them."""
    lines = []
    for board in boards(tables(store)["leaderboard"].rows):
        ours = [row for row in board if row["kind"] == "ours"]
        labelled = [row for row in ours if LABELS in (row["options"] or "")]
        ours = [row for row in ours if row not in labelled][:_MOST_ROWS] + labelled
        for row in board:
            if row["kind"] == "ours" and row not in ours:
                continue
            line = [row["dataset"], starred(row, "model")]
            line += [score_text(row), score_text(row, "published_mean")]
            gap, *spreads = (row[key] for key in _GAP)
            line += [gap_text(gap, *spreads), plain_text(row, "splits")]
            lines.append(line)
    if not lines:
        return NOTHING
    header = ["dataset", "model", "ours", "published", "ours − published", "splits"]
    return markdown((header, lines))
