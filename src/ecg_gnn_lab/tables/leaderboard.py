"""The leaderboard: our models beside what has been published, dataset by dataset."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from ecg_gnn.config.tags import LABELS, tagged
from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.table import model_name
from ecg_gnn_lab.paper import numbers, published
from ecg_gnn_lab.paper.published import (
    Published,
    on_official_graph,
    published_score,
    published_values,
)
from ecg_gnn_lab.tables.document import (
    PUBLISHED_COLUMNS,
    Column,
    Row,
    Source,
    TableDocument,
    common_notes,
    score_values,
    signed_text,
)

_EXPLAINED = (
    "Ours: mean ± sample standard deviation of the test score in percent over splits. "
    "Every model stands here plain, with ECG as in the paper, and with ECG and options "
    "past it; settings, embeddings and options were chosen by mean validation score. "
    "Controls are in the results table.",
    "* our best: chosen on validation, too, among the rows with the most trainings.",
    "Best published: the highest mean on ten official splits of the undirected graph "
    "whose source has been checked. Its row stands where its mean puts it. Differences "
    "of means below about one standard deviation are noise.",
)
_QUOTED = (
    "Published numbers of specialised models are those that the paper quotes; the code "
    "behind several of them chose settings on test scores or has faults, so ours need "
    "not meet them."
)


def leaderboard_table(source: Source) -> TableDocument:
    """Every model with its published number, best first, the best published among."""
    selection = source.selection
    shown = _boards(selection)
    rows = [row for cells in shown for row in _board_rows(selection, cells)]
    return TableDocument(
        name="leaderboard",
        title="Leaderboard: ours beside the published results",
        columns=_columns(),
        rows=rows,
        notes=[
            *_EXPLAINED,
            *([_QUOTED] if _quotes(shown) else []),
            *_protocol_notes(rows),
            *common_notes(selection, shown),
        ],
        rule_between=("dataset",),
    )


def boards(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of the table, apart for every graph and kind of splits."""
    return [list(board) for _, board in groupby(rows, key=_board)]


def best_published(board: Iterable[Row]) -> tuple[list[str], Row | None]:
    """Names of a board's best published results, which are equal, and one of them."""
    rows = [row for row in board if row["kind"] == "published"]
    names = [row["model"].partition(": ")[2] for row in rows]
    return names, next((r for r in rows if r["published_mean"] is not None), None)


def _board(row: Row) -> tuple[Any, ...]:
    return row["dataset"], row["dataset_sha256"], row["random_splits"]


def _boards(selection: Selection) -> list[list[Cell]]:
    """The cells that are shown, by the graph and the splits that they are on."""
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cells in selection.models():
        key = cells[0].key
        board = (key.dataset, key.dataset_sha256, key.random_splits)
        found.setdefault(board, []).extend(_shown(cells))
    return [cells for cells in found.values() if cells]


def _shown(cells: Sequence[Cell]) -> list[Cell]:
    """One model plain, with the best ECG as in the paper, and with the best past it."""
    plain = [cell for cell in cells if cell.key.variant == "baseline"]
    as_in_paper = best_ecg(cell for cell in cells if not _options(cell))
    past_it = best_ecg(cell for cell in cells if _options(cell))
    return [*plain, *(cell for cell in (as_in_paper, past_it) if cell is not None)]


def _options(cell: Cell) -> list[str]:
    """Options past the paper, but labels as input, which make another model."""
    return [tag for tag in cell.key.tags if tag != LABELS]


def _board_rows(selection: Selection, cells: Sequence[Cell]) -> list[Row]:
    best = published.best(cells[0].key.dataset) if on_official_graph(cells[0]) else []
    chosen = _best_on_validation(cells)
    rows = [_row(selection, cell, cell is chosen, best) for cell in cells]
    return sorted([*rows, *_published_rows(rows[0], best)], key=_place)


def _place(row: Row) -> float:
    """By score; that there is nothing to compare with is said first."""
    means = row["test_mean"], row["published_mean"]
    return -next((mean for mean in means if mean is not None), math.inf)


def _best_on_validation(cells: Sequence[Cell]) -> Cell:
    most = max(len(cell.chosen.records) for cell in cells)
    rivals = [cell for cell in cells if len(cell.chosen.records) == most]
    return max(rivals, key=lambda cell: cell.chosen.val_mean)


def _row(
    selection: Selection, cell: Cell, is_best: bool, best: Sequence[Published]
) -> Row:
    key, chosen = cell.key, cell.chosen
    ours = 100 * chosen.test_mean
    row: dict[str, Any] = {
        "dataset": key.dataset,
        "dataset_sha256": key.dataset_sha256,
        "random_splits": key.random_splits,
        "kind": "ours",
        "model": _name(cell),
        "variant": key.variant,
        "embedding": key.embedding,
        "options": ", ".join(key.tags) or None,
        "best_on_validation": is_best,
        "metric": selection.dataset(key).metric,
        "splits": len({split for split, _ in chosen.pairs}),
        "units": len(chosen.records),
        **score_values(chosen),
        **published_values(published_score(cell), ours),
        "best_published_difference": ours - best[0].mean if best else None,
    }
    return row | {"configuration": chosen.configuration.id}


def _name(cell: Cell) -> str:
    """``tuned gcn, ECG (mlp), cross-fitted, gated + labels``."""
    key = cell.key
    name = model_name(key.backbone, key.model)
    if key.variant == "ecg":
        name += f", ECG ({key.embedding})"
    return tagged(name, key.tags)


def _published_rows(like: Row, best: Sequence[Published]) -> list[Row]:
    """A row for each best published result; one that says there is none, for others."""
    entry = CATALOGUE.get(like["dataset"])
    if not best and entry is not None and entry.kind == "substitute":
        told = "best published: none with these features"
        return [_published_row(like, told, None)]
    return [
        _published_row(like, f"best published: {each.method}", each) for each in best
    ]


def _published_row(like: Row, name: str, found: Published | None) -> Row:
    """With the keys of a row of ours, in their order."""
    kept = ("dataset", "dataset_sha256", "random_splits")
    return {
        **dict.fromkeys(like),
        **{key: like[key] for key in kept},
        "kind": "published",
        "model": name,
        "best_on_validation": False,
        **published_values(found, None),
    }


def _quotes(shown: Sequence[Sequence[Cell]]) -> bool:
    return any(
        cell.key.model in numbers.SPECIALISED and published_score(cell) is not None
        for cells in shown
        for cell in cells
    )


def _protocol_notes(rows: Sequence[Row]) -> list[str]:
    """Published numbers that were not got as ours were, and higher ones elsewhere."""
    unlike = [row for row in rows if row["published_unlike"]]
    notes = [
        f"{row['model']} on {row['dataset']}: the published number is of another "
        f"protocol ({row['published_unlike']})."
        for row in unlike
    ]
    ranked = [row for row in rows if row["kind"] == "published"]
    for dataset in dict.fromkeys(r["dataset"] for r in ranked if r["published_mean"]):
        higher = [
            f"{each.method} {each.mean:.2f} ({each.unlike})"
            for each in published.higher_elsewhere(dataset)
        ]
        if higher:
            notes.append(f"{dataset}, higher but not alike: {', '.join(higher)}.")
    return notes


def _columns() -> list[Column]:
    def difference(row: Row) -> str:
        return signed_text(row["best_published_difference"])

    return [
        Column("dataset", "dataset"),
        Column("model", "model", _shown_name),
        *PUBLISHED_COLUMNS,
        Column("ours − best", "best_published_difference", difference),
        Column("splits", "splits", splits_text),
        Column("source", "published_source", part="source"),
    ]


def _shown_name(row: Row) -> str:
    return f"{row['model']} *" if row["best_on_validation"] else str(row["model"])


def splits_text(row: Row) -> str:
    """How many splits a row has, and of how many where that is not all."""
    found, all_of_them = row["splits"], published.num_splits()
    if found is None:
        return ""
    return str(found) if found >= all_of_them else f"{found} of {all_of_them}"
