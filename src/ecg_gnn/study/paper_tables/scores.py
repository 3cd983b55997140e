"""The results table and the detailed one: scores, the paper's, paired differences."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ecg_gnn.config.variants import identity_control
from ecg_gnn.paper import numbers
from ecg_gnn.paper.published import Published
from ecg_gnn.study.compare import PairedTest, corrected
from ecg_gnn.study.paper_tables.document import (
    Row,
    TableDocument,
)
from ecg_gnn.study.paper_tables.notes import (
    SCORES_EXPLAINED,
    common_notes,
    head_to_head,
)
from ecg_gnn.study.paper_tables.published import (
    DETAILED,
    headline_score,
    official,
    published_score,
    published_values,
)
from ecg_gnn.study.paper_tables.score_columns import RIVALS, score_columns
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.store import Store

PaperScore = Callable[[Cell], numbers.Score | None]


def results_table(store: Store, recipe: str | None = None) -> TableDocument:
    """Every model plain, with its best evolved graph, and with the controls."""
    selection = Selection.of(store, recipe=recipe)
    groups = [_headline_cells(cells) for cells in selection.models()]
    title = "Results: the embedding of every ECG row was chosen on validation"
    return _document("results", title, selection, groups, headline_score)


def embeddings_table(store: Store, recipe: str | None = None) -> TableDocument:
    """Every model with every embedding that it was run with."""
    selection = Selection.of(store, recipe=recipe)
    title = "Every embedding; * marks the one that validation chooses"
    return _document("embeddings", title, selection, selection.models(), _cell_score)


def _headline_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Baseline, the chosen ECG, and the controls of its size and with its options."""
    ecg = best_ecg(cells)
    like = (ecg or cells[0]).key
    size = 1 if ecg is None else 1 + (like.embedding or "").count(",")
    control = like.of_variant("identity", identity_control(size).embedding)
    return [
        cell
        for cell in cells
        if cell is ecg
        or cell.key == control
        or (
            cell.key.variant in ("baseline", "random")
            and cell.key == like.of_variant(cell.key.variant, cell.key.embedding)
        )
    ]


def _cell_score(cell: Cell) -> numbers.Score | None:
    if not official(cell) or cell.key.variant not in ("baseline", "ecg"):
        return None
    return numbers.detailed(cell.key.dataset, cell.key.model, cell.key.embedding)


@dataclass(frozen=True)
class _Line:
    """One row before it is written: its cell, and its tests by rival."""

    cell: Cell
    best: bool
    tests: dict[str, PairedTest | None]


def _document(
    name: str,
    title: str,
    selection: Selection,
    groups: Sequence[Sequence[Cell]],
    paper: PaperScore,
) -> TableDocument:
    lines = _lines(selection, groups)
    mark_best = name == "embeddings"
    return TableDocument(
        name=name,
        title=title,
        columns=score_columns(mark_best),
        rows=[_row(selection, line, paper(line.cell)) for line in lines],
        notes=[
            *head_to_head(groups),
            *SCORES_EXPLAINED,
            *common_notes(selection, groups),
        ],
    )


def _lines(selection: Selection, groups: Sequence[Sequence[Cell]]) -> list[_Line]:
    """Rows with their tests; those of ECG rows are corrected over the whole table."""
    cells = [cell for group in groups for cell in group]
    best = [best_ecg(group) for group in groups]
    ecg = [cell for cell in cells if cell.key.variant == "ecg"]
    asked = [(cell, other) for cell in ecg for other in RIVALS]
    found = corrected(selection.against(cell, other) for cell, other in asked)
    tests = {
        (cell.key, other): test
        for (cell, other), test in zip(asked, found, strict=True)
    }
    lines = []
    for cell in cells:
        own = {
            other: tests.get((cell.key, other)) or selection.against(cell, other)
            for other in RIVALS
        }
        lines.append(_Line(cell, cell in best, own))
    return lines


def _row(selection: Selection, line: _Line, paper: numbers.Score | None) -> Row:
    cell = line.cell
    chosen, mean = cell.chosen, 100 * cell.chosen.test_mean
    row: dict[str, Any] = {
        "dataset": cell.key.dataset,
        "model": cell.key.model_label,
        "variant": cell.key.variant,
        "embedding": cell.key.embedding,
        "label": cell.label,
        "best_on_validation": line.best,
        "metric": selection.dataset(cell.key).metric,
        "units": len(chosen.records),
        "test_mean": mean,
        "test_std": None if chosen.test_std is None else 100 * chosen.test_std,
        "val_mean": 100 * chosen.val_mean,
        "paper_mean": None if paper is None else paper.mean,
        "paper_std": None if paper is None else paper.std,
        "paper_difference": None if paper is None else mean - paper.mean,
        **published_values(_published(cell, paper), mean),
    }
    for other, test in line.tests.items():
        row |= columns_of_test(f"minus_{other}", test)
    return row | {"configuration": chosen.configuration.id}


def _published(cell: Cell, paper: numbers.Score | None) -> Published | None:
    """What is published on a cell: in the paper's table that is shown, if it is."""
    if paper is None or paper == headline_score(cell):
        return published_score(cell)
    return Published(cell.key.model, paper.mean, paper.std, DETAILED)


def columns_of_test(prefix: str, test: PairedTest | None) -> dict[str, Any]:
    """A test as columns of a row, differences in points."""
    percent = {"": "mean", "_ci_low": "ci_low", "_ci_high": "ci_high"}
    found: dict[str, Any] = {}
    for suffix, name in percent.items():
        value = None if test is None else getattr(test, name)
        found[prefix + suffix] = None if value is None else 100 * value
    for name in ("p", "p_wilcoxon", "p_holm"):
        found[f"{prefix}_{name}"] = None if test is None else getattr(test, name)
    return found
