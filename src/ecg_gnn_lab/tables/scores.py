"""The results table and the detailed one: scores, the paper's, paired differences."""

from collections.abc import Callable, Sequence
from typing import Any

from ecg_gnn.config.identity import identity_control
from ecg_gnn.study.compare import PairedTest, corrected
from ecg_gnn.study.selection import Cell, CellKey, Selection, best_ecg
from ecg_gnn_lab import paper_numbers
from ecg_gnn_lab.published import (
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
    plain_text,
    score_values,
    starred,
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
    groups = [_headline_cells(cells) for cells in source.selection.models()]
    title = "Results: the embedding of every ECG row was chosen on validation"
    return _document("results", title, source.selection, groups, headline_score)


def embeddings_table(source: Source) -> TableDocument:
    """Every model with every embedding that it was run with."""
    groups = source.selection.models()
    title = "Every embedding; * marks the one that validation chooses"
    return _document("embeddings", title, source.selection, groups, detailed_score)


def _headline_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Baseline, the chosen ECG, and the controls of its size and with its options."""
    ecg = best_ecg(cells)
    like = (ecg or cells[0]).key
    size = 1 if ecg is None else 1 + (like.embedding or "").count(",")
    control = identity_control(size).embedding
    return [
        cell
        for cell in cells
        if cell is ecg
        or cell.key == like.of_variant("identity", control)
        or any(_is_variant(cell, like, name) for name in ("baseline", "random"))
    ]


def _is_variant(cell: Cell, like: CellKey, variant: str) -> bool:
    """Whether a cell is of this variant, with those options of another that apply."""
    key = cell.key
    return key.variant == variant and key == like.of_variant(variant, key.embedding)


def _document(
    name: str,
    title: str,
    selection: Selection,
    groups: Sequence[Sequence[Cell]],
    paper: Callable[[Cell], paper_numbers.Score | None],
) -> TableDocument:
    best = [best_ecg(group) for group in groups]
    cells = [cell for group in groups for cell in group]
    tests = _tests(selection, cells)
    return TableDocument(
        name=name,
        title=title,
        columns=_columns(mark_best=name == "embeddings"),
        rows=[
            _row(selection, cell, cell in best, each, paper(cell))
            for cell, each in zip(cells, tests, strict=True)
        ],
        notes=[
            *_head_to_head(groups),
            *_EXPLAINED,
            *common_notes(selection, cells),
        ],
    )


def _tests(selection: Selection, cells: Sequence[Cell]) -> list[Tests]:
    """Every cell's tests; those of ECG rows are corrected over the whole table."""
    tests = [[selection.against(cell, other) for other in RIVALS] for cell in cells]
    ecg = [i for i, cell in enumerate(cells) if cell.key.variant == "ecg"]
    adjusted = iter(corrected(test for i in ecg for test in tests[i]))
    for i in ecg:
        tests[i] = [next(adjusted) for _ in RIVALS]
    return [dict(zip(RIVALS, each, strict=True)) for each in tests]


def _row(
    selection: Selection,
    cell: Cell,
    is_best: bool,
    tests: Tests,
    paper: paper_numbers.Score | None,
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


def _published(cell: Cell, paper: paper_numbers.Score | None) -> Published | None:
    """What is published on a cell: in the paper's table that is shown, if it is."""
    if paper is None or paper == headline_score(cell):
        return published_score(cell)
    return Published(cell.key.model, *paper, DETAILED)


def columns_of_test(prefix: str, test: PairedTest | None) -> dict[str, Any]:
    """A test as columns of a row, differences in points."""
    row: dict[str, Any] = {}
    shares = {"": "mean", "_ci_low": "ci_low", "_ci_high": "ci_high"}
    for suffix, name in shares.items():
        share = getattr(test, name, None)
        row[prefix + suffix] = None if share is None else 100 * share
    for name in ("p", "p_wilcoxon", "p_holm"):
        row[f"{prefix}_{name}"] = getattr(test, name, None)
    return row


def _head_to_head(groups: Sequence[Sequence[Cell]]) -> list[str]:
    """Wins, ties and losses of the chosen ECG cells, as the paper counts its own."""
    notes = []
    for other in RIVALS:
        pairs = []
        for cells in groups:
            ecg = best_ecg(cells)
            rivals = [c for c in cells if ecg and _is_variant(c, ecg.key, other)]
            if ecg is not None and rivals:
                means = ecg.chosen.test_mean, rivals[0].chosen.test_mean
                pairs.append((100 * means[0], 100 * means[1]))
        wins, ties, losses = paper_numbers.count(pairs)
        paper = "the paper has no such control"
        if other == "baseline":
            theirs = paper_numbers.head_to_head()
            paper = "the paper: {}, {}, {} of {}".format(*theirs, sum(theirs))
        if pairs:
            notes.append(
                f"ECG against {other}, by means at two decimals: {wins} wins, "
                f"{ties} ties, {losses} losses of {len(pairs)} ({paper})."
            )
    return notes


def _columns(mark_best: bool) -> list[Column]:
    """Scores, published ones, and paired differences with what chance allows."""
    columns = [
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("variant", "label", starred if mark_best else plain_text),
        Column("n", "units"),
        *PUBLISHED_COLUMNS,
    ]
    for key in (f"minus_{other}" for other in RIVALS):
        title = f"{key.replace('minus_', '− ')} [95% CI]"
        columns += [
            Column(title, key, difference_text, "tests"),
            Column("p Holm (Wilcoxon)", f"{key}_p_holm", _p_values, "tests"),
        ]
    return columns


def _p_values(row: Row, key: str) -> str:
    holm, wilcoxon = row[key], row[key.replace("_holm", "_wilcoxon")]
    return "" if holm is None else f"{p_text(holm)} ({p_text(wilcoxon)})"
