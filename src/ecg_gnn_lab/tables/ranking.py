"""The leaderboard: our models beside what has been published, dataset by dataset."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from ecg_gnn.config.identity import LABELS, tagged
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.table import model_name
from ecg_gnn_lab import published
from ecg_gnn_lab.published import Published, published_score, published_values
from ecg_gnn_lab.tables import document as doc

_BOARD = ("dataset", "dataset_sha256", "random_splits", "label_rate")
BEST = "best published: "  # how the name of such a row begins
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
    "Published numbers of specialised models are those that the paper quotes; the code "
    "behind several of them chose settings on test scores or has faults, so ours need "
    "not meet them.",
)


def leaderboard_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model with its published number, best first, the best published among."""
    selection = source.selection
    groups = _cells_of_boards(selection)
    rows = [row for group in groups for row in _board_rows(selection, group)]
    ranked = dict.fromkeys(r["dataset"] for r in rows if r["kind"] == "published")
    cells = [cell for group in groups for cell in group]
    return doc.TableDocument(
        name="leaderboard",
        title="Leaderboard: ours beside the published results",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("model", "model", doc.starred),
            *doc.PUBLISHED_COLUMNS,
            doc.Column("ours − best", "best_published_difference", doc.signed_value),
            doc.Column("splits", "splits"),
            doc.Column("source", "published_source", _source_text),
        ],
        rows=rows,
        notes=[
            *_EXPLAINED,
            *filter(None, map(_higher_elsewhere, ranked)),
            *doc.common_notes(selection, cells),
        ],
    )


def boards(rows: Iterable[doc.Row]) -> list[list[doc.Row]]:
    """The rows of the table, apart for every graph and kind of splits."""
    return [list(group) for _, group in groupby(rows, key=itemgetter(*_BOARD))]


def _source_text(row: doc.Row, key: str) -> str:
    source, unlike = doc.plain_text(row, key), row["published_unlike"]
    return f"{source} (another protocol: {unlike})" if unlike else source


def _higher_elsewhere(dataset: str) -> str:
    """Results above the best one, from another protocol or an unchecked one."""
    bar = published.best(dataset)[0].mean
    higher = [one for one in published.results(dataset) if one.mean > bar]
    named = ", ".join(f"{one.method} {one.mean:.2f} ({one.unlike})" for one in higher)
    return named and f"{dataset}, higher but not alike: {named}."


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
    """Ours and the best published results of one graph, by their scores."""
    official = published.on_official_graph(cells[0])
    best = published.best(cells[0].key.dataset) if official else []
    # Published models have no labels as input, so ours are compared without them.
    alike = [cell for cell in cells if LABELS not in cell.key.tags] or cells
    most = max(len(cell.chosen.records) for cell in alike)
    rivals = [cell for cell in alike if len(cell.chosen.records) == most]
    chosen = max(rivals, key=lambda cell: cell.chosen.val_mean)
    rows = [_row(selection, cell, cell is chosen, best) for cell in cells]
    place = {key: rows[0][key] if key in _BOARD else None for key in rows[0]}
    place |= {"kind": "published", "best_on_validation": False}
    rows += [
        place | {"model": BEST + one.method, **published_values(one, None)}
        for one in best
    ]
    return sorted(rows, key=_place)


def _place(row: doc.Row) -> tuple[bool, float]:
    """By score, labels as input last."""
    score = "published_mean" if row["test_mean"] is None else "test_mean"
    return LABELS in (row["options"] or ""), -row[score]


def _row(
    selection: Selection, cell: Cell, is_best: bool, best: Sequence[Published]
) -> dict[str, Any]:
    key, chosen, ours = cell.key, cell.chosen, 100 * cell.chosen.test_mean
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
