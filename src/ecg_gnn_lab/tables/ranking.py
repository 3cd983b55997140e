"""The leaderboard: our models beside what has been published, dataset by dataset."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from ecg_gnn.config.identity import LABELS, tagged
from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.table import model_name
from ecg_gnn_lab import published
from ecg_gnn_lab.published import Published, published_score, published_values
from ecg_gnn_lab.tables import document as doc

_BOARD = ("dataset", "dataset_sha256", "random_splits", "label_rate")
_EXPLAINED = (
    "Ours: mean ± sample standard deviation of the test score in percent over splits. "
    "Every model stands here plain, with ECG as in the paper, and with ECG and options "
    "past it; settings, embeddings and options were chosen by mean validation score. "
    "Controls are in the results table.",
    "* our best: chosen on validation, too, among rows with the most trainings and, "
    "as in what is published, without labels as input, which stand last.",
    "Best published: the highest mean on ten official splits of the undirected graph "
    "whose source has been checked. Its row stands where its mean puts it. Differences "
    "of means below about one standard deviation are noise.",
)
_QUOTED = (
    "Published numbers of specialised models are those that the paper quotes; the code "
    "behind several of them chose settings on test scores or has faults, so ours need "
    "not meet them."
)


def leaderboard_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model with its published number, best first, the best published among."""
    selection = source.selection
    groups = _cells_of_boards(selection)
    rows = [row for group in groups for row in _board_rows(selection, group)]
    cells = [cell for group in groups for cell in group]
    specialised = [c for c in cells if c.key.model in published.SPECIALISED]
    quoted = any(published_score(cell) is not None for cell in specialised)
    return doc.TableDocument(
        name="leaderboard",
        title="Leaderboard: ours beside the published results",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("model", "model", doc.starred),
            *doc.PUBLISHED_COLUMNS,
            doc.Column("ours − best", "best_published_difference", doc.signed_value),
            doc.Column("splits", "splits", splits_text),
            doc.Column("source", "published_source", part="source"),
        ],
        rows=rows,
        notes=[
            *_EXPLAINED,
            *([_QUOTED] if quoted else []),
            *_protocol_notes(rows),
            *doc.common_notes(selection, cells),
        ],
        rule_between=("dataset",),
    )


def boards(rows: Iterable[doc.Row]) -> list[list[doc.Row]]:
    """The rows of the table, apart for every graph and kind of splits."""
    return [list(group) for _, group in groupby(rows, key=itemgetter(*_BOARD))]


def best_published(board: Iterable[doc.Row]) -> tuple[list[str], doc.Row | None]:
    """Names of a board's best published results, which are equal, and one of them."""
    rows = [row for row in board if row["kind"] == "published"]
    names = [row["model"].partition(": ")[2] for row in rows]
    return names, next((r for r in rows if r["published_mean"] is not None), None)


def splits_text(row: doc.Row, key: str = "splits") -> str:
    """How many splits a row has, and of how many where that is not all."""
    splits, official = row[key], published.read("published.json")["splits"]
    if splits is None:
        return ""
    return str(splits) if splits >= official else f"{splits} of {official}"


def _cells_of_boards(selection: Selection) -> list[list[Cell]]:
    """The cells that are shown, by the graph and the splits that they are on.

    Every model plain, with the best ECG as in the paper, and with the best past it.
    """
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cells in selection.models():
        past_paper = [cell for cell in cells if {*cell.key.tags} - {LABELS}]
        as_in_paper = [cell for cell in cells if cell not in past_paper]
        best = best_ecg(as_in_paper), best_ecg(past_paper)
        shown = [cell for cell in cells if cell.key.variant == "baseline"]
        shown += [cell for cell in best if cell is not None]
        groups.setdefault(attrgetter(*_BOARD)(cells[0].key), []).extend(shown)
    return [cells for cells in groups.values() if cells]


def _board_rows(selection: Selection, cells: Sequence[Cell]) -> list[doc.Row]:
    dataset = cells[0].key.dataset
    best = published.best(dataset) if published.on_official_graph(cells[0]) else []
    # Published models have no labels as input, so ours are compared without them.
    alike = [cell for cell in cells if LABELS not in cell.key.tags] or cells
    most = max(len(cell.chosen.records) for cell in alike)
    rivals = [cell for cell in alike if len(cell.chosen.records) == most]
    chosen = max(rivals, key=lambda cell: cell.chosen.val_mean)
    rows = [_row(selection, cell, cell is chosen, best) for cell in cells]
    others: dict[str, Published | None] = {each.method: each for each in best}
    entry = CATALOGUE.get(dataset)
    if not best and entry is not None and entry.kind == "substitute":
        others = {"none with these features": None}
    rows += [_published_row(rows[0], name, each) for name, each in others.items()]
    return sorted(rows, key=_place)


def _place(row: doc.Row) -> tuple[bool, float]:
    """By score, labels as input last; that nothing compares is said first."""
    means = row["test_mean"], row["published_mean"]
    score = next((mean for mean in means if mean is not None), math.inf)
    return LABELS in (row["options"] or ""), -score


def _row(
    selection: Selection, cell: Cell, is_best: bool, best: Sequence[Published]
) -> doc.Row:
    key, chosen = cell.key, cell.chosen
    ours = 100 * chosen.test_mean
    # Published models read no labels: a difference from them would mean nothing.
    alike = best and LABELS not in key.tags
    name = model_name(key.backbone, key.model)
    if key.variant == "ecg":
        name += f", ECG ({key.embedding})"
    return {
        **{name: getattr(key, name) for name in _BOARD},
        "kind": "ours",
        "model": tagged(name, key.tags),
        "variant": key.variant,
        "embedding": key.embedding,
        "options": ", ".join(key.tags) or None,
        "best_on_validation": is_best,
        "metric": selection.dataset(key).metric,
        "splits": len({split for split, _ in chosen.tests}),
        "units": len(chosen.records),
        **doc.score_values(chosen),
        **published_values(published_score(cell), ours),
        "best_published_difference": ours - best[0].mean if alike else None,
        "configuration": chosen.configuration.id,
    }


def _published_row(like: doc.Row, name: str, result: Published | None) -> doc.Row:
    """A best published result, with the keys of a row of ours in their order."""
    return {
        **{key: value if key in _BOARD else None for key, value in like.items()},
        "kind": "published",
        "model": f"best published: {name}",
        "best_on_validation": False,
        **published_values(result, None),
    }


def _protocol_notes(rows: Sequence[doc.Row]) -> list[str]:
    """Published numbers from another protocol than ours, and higher ones elsewhere."""
    notes = [
        f"{row['model']} on {row['dataset']}: the published number is of another "
        f"protocol ({row['published_unlike']})."
        for row in rows
        if row["published_unlike"]
    ]
    ranked = [r for r in rows if r["kind"] == "published" and r["published_mean"]]
    for dataset in dict.fromkeys(row["dataset"] for row in ranked):
        elsewhere = published.higher_elsewhere(dataset)
        higher = [f"{one.method} {one.mean:.2f} ({one.unlike})" for one in elsewhere]
        if higher:
            notes.append(f"{dataset}, higher but not alike: {', '.join(higher)}.")
    return notes
