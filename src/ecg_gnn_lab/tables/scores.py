"""The results table and the detailed one: scores, the paper's, paired differences."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ecg_gnn.config.variants import identity_control
from ecg_gnn.study.compare import PairedTest, corrected
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.paper.published import (
    DETAILED,
    Published,
    detailed_score,
    headline_score,
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
    difference_text,
    p_text,
    score_values,
)

RIVALS = ("baseline", "identity")
"""What every ECG row is compared with."""
Tests = dict[str, PairedTest | None]
_EXPLAINED = (
    "Mean ± sample standard deviation in percent over n trainings (splits × seeds); "
    "hyper-parameters were chosen by mean validation score, never by test.",
    "Differences are paired by split and seed, with Student's 95% interval; p is of "
    "the paired t-test, Holm-corrected over all ECG rows of the table (in brackets "
    "that of Wilcoxon's signed ranks, uncorrected).",
    "Identity: evolved graphs of self-loops only, with the same parameters. A gain "
    "over the baseline that is none over identity does not come from evolved edges.",
)


def results_table(source: Source) -> TableDocument:
    """Every model plain, with its best evolved graph, and with the controls."""
    selection = source.selection
    groups = [_headline_cells(cells) for cells in selection.models()]
    title = "Results: the embedding of every ECG row was chosen on validation"
    return _document("results", title, selection, groups, headline_score)


def embeddings_table(source: Source) -> TableDocument:
    """Every model with every embedding that it was run with."""
    selection = source.selection
    title = "Every embedding; * marks the one that validation chooses"
    groups = selection.models()
    return _document("embeddings", title, selection, groups, detailed_score)


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


def _document(
    name: str,
    title: str,
    selection: Selection,
    groups: Sequence[Sequence[Cell]],
    paper: Callable[[Cell], numbers.Score | None],
) -> TableDocument:
    best = [best_ecg(group) for group in groups]
    return TableDocument(
        name=name,
        title=title,
        columns=_columns(mark_best=name == "embeddings"),
        rows=[
            _row(selection, cell, cell in best, tests, paper(cell))
            for cell, tests in _tested(selection, groups)
        ],
        notes=[
            *_head_to_head(groups),
            *_EXPLAINED,
            *common_notes(selection, groups),
        ],
    )


def _tested(
    selection: Selection, groups: Sequence[Sequence[Cell]]
) -> list[tuple[Cell, Tests]]:
    """Cells with their tests; those of ECG rows are corrected over the whole table."""
    cells = [cell for group in groups for cell in group]
    ecg = [cell for cell in cells if cell.key.variant == "ecg"]
    asked = [(cell, other) for cell in ecg for other in RIVALS]
    found = corrected(selection.against(cell, other) for cell, other in asked)
    tests = {
        (cell.key, other): test
        for (cell, other), test in zip(asked, found, strict=True)
    }
    return [
        (
            cell,
            {
                other: tests.get((cell.key, other)) or selection.against(cell, other)
                for other in RIVALS
            },
        )
        for cell in cells
    ]


def _row(
    selection: Selection,
    cell: Cell,
    is_best: bool,
    tests: Tests,
    paper: numbers.Score | None,
) -> Row:
    chosen, mean = cell.chosen, 100 * cell.chosen.test_mean
    row: dict[str, Any] = {
        "dataset": cell.key.dataset,
        "model": cell.key.model_label,
        "variant": cell.key.variant,
        "embedding": cell.key.embedding,
        "label": cell.label,
        "best_on_validation": is_best,
        "metric": selection.dataset(cell.key).metric,
        "units": len(chosen.records),
        **score_values(chosen),
        "paper_mean": None if paper is None else paper.mean,
        "paper_std": None if paper is None else paper.std,
        "paper_difference": None if paper is None else mean - paper.mean,
        **published_values(_published(cell, paper), mean),
    }
    for other, test in tests.items():
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


def _head_to_head(groups: Sequence[Sequence[Cell]]) -> list[str]:
    """Wins, ties and losses of the chosen ECG cells, as the paper counts its own."""
    notes = []
    for other in RIVALS:
        pairs = []
        for cells in groups:
            ecg = best_ecg(cells)
            rivals = [c for c in cells if ecg and _is_rival(c, ecg, other)]
            if ecg is not None and rivals:
                means = ecg.chosen.test_mean, rivals[0].chosen.test_mean
                pairs.append((100 * means[0], 100 * means[1]))
        if pairs:
            notes.append(_counted(other, pairs))
    return notes


def _is_rival(cell: Cell, ecg: Cell, other: str) -> bool:
    """Whether a cell is of another variant with the options that the ECG cell has."""
    key = cell.key
    return key.variant == other and key == ecg.key.of_variant(other, key.embedding)


def _counted(other: str, pairs: list[tuple[float, float]]) -> str:
    ours, paper = numbers.count(pairs), numbers.head_to_head()
    said = (
        f"ECG against {other}, by means at two decimals: {ours.wins} wins, "
        f"{ours.ties} ties, {ours.losses} losses of {len(pairs)}"
    )
    if other != "baseline":
        return f"{said} (the paper has no such control)."
    theirs = f"{paper.wins}, {paper.ties}, {paper.losses} of {sum(paper)}"
    return f"{said} (the paper: {theirs})."


def _columns(mark_best: bool) -> list[Column]:
    """Scores, published ones, and paired differences with what chance allows."""

    def label(row: Row) -> str:
        best = mark_best and row["best_on_validation"]
        return f"{row['label']} *" if best else str(row["label"])

    columns = [
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("variant", "label", label),
        Column("n", "units"),
        *PUBLISHED_COLUMNS,
    ]
    for other in RIVALS:
        show, key = partial(difference_text, other=other), f"minus_{other}"
        p_values = partial(_p_values, other=other)
        columns += [
            Column(f"− {other} [95% CI]", key, show, "tests"),
            Column("p Holm (Wilcoxon)", f"{key}_p_holm", p_values, "tests"),
        ]
    return columns


def _p_values(row: Row, other: str) -> str:
    holm, wilcoxon = row[f"minus_{other}_p_holm"], row[f"minus_{other}_p_wilcoxon"]
    return "" if holm is None else f"{p_text(holm)} ({p_text(wilcoxon)})"
