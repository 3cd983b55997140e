"""Every cell beside the paper's: which are where they should be, and what was tried."""

from collections.abc import Sequence

from cached import table
from wording import NOTHING, cell_name, score, signed

from ecg_gnn.config import RunConfig
from ecg_gnn.study import Cell, Selection, Store
from ecg_gnn.study.settings import flatten
from ecg_gnn.study.table import markdown
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.tables.document import Row

BAR = 1.0
"""Points that a mean may be away from the paper's; an ECG mean may be any above."""


def compared(store: Store) -> list[Row]:
    """Rows that the paper has a number for: plain models, and every embedding.

    Models that it only quotes have a number of other code: see the leaderboard.
    """
    results = table("results", store).rows
    rows = [row for row in results if row["variant"] == "baseline"]
    rows += [row for row in table("embeddings", store).rows if row["variant"] == "ecg"]
    order = [(row["dataset"], row["model"]) for row in results]
    return sorted(
        (
            row
            for row in rows
            if row["paper_mean"] is not None and row["model"] in numbers.MODELS
        ),
        key=lambda row: order.index((row["dataset"], row["model"])),
    )


def reached(row: Row) -> bool:
    """Whether a plain model is near the paper's, and an ECG model not far below it."""
    if row["variant"] == "baseline":
        return bool(abs(row["paper_difference"]) <= BAR)
    return bool(row["paper_difference"] >= -BAR)


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
            score(row),
            score(row, "paper"),
            signed(row["paper_difference"]),
            "reached" if reached(row) else "**missed**",
        ]
        for row in rows
    ]
    return f"{_counted(rows)}\n\n{markdown(([*header, 'bar'], cells))}"


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
    far = max(rows, key=lambda row: abs(row["paper_difference"]))
    return (
        f"{text}.** Furthest away: {cell_name(far)}, {signed(far['paper_difference'])}."
    )


def tried_block(store: Store) -> str:
    """For cells that miss the bar, every setting that was run."""
    rows = missed(store)
    if not rows:
        return "No cell that has been run misses its bar."
    cells = {each.chosen.configuration.id: each for each in Selection.of(store).cells}
    lines = [
        [cell_name(row), *line]
        for row in rows
        for line in _candidates(cells[row["configuration"]], row["paper_mean"])
    ]
    header = ["cell", "settings", "validation", "test", "ours − paper"]
    return markdown((header, lines))


def _candidates(cell: Cell, paper: float) -> list[list[str]]:
    """Every configuration of a cell: what tells it apart, and its scores."""
    settings = [
        flatten(RunConfig.from_dict(each.configuration.config))
        for each in cell.candidates
    ]
    varied = [
        name for name in settings[0] if len({str(each[name]) for each in settings}) > 1
    ]
    lines = []
    for candidate, found in zip(cell.candidates, settings, strict=True):
        shown = ", ".join(f"{name} {found[name]}" for name in varied)
        test = 100 * candidate.test_mean
        values = [f"{100 * candidate.val_mean:.2f}", f"{test:.2f}"]
        lines.append([shown or "one only", *values, signed(test - paper)])
    return lines
