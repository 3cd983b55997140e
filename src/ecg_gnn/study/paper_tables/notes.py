"""What has to be said under a table, whatever it shows."""

from collections.abc import Sequence

from ecg_gnn.config.tags import explain
from ecg_gnn.paper import numbers
from ecg_gnn.study.paper_tables.score_columns import RIVALS
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn.study.store import DatasetInfo

SCORES_EXPLAINED = (
    "Mean ± sample standard deviation in percent over n trainings (splits × seeds); "
    "hyper-parameters were chosen by mean validation score, never by test.",
    "Differences are paired by split and seed, with Student's 95% interval; p is of "
    "the paired t-test, Holm-corrected over all ECG rows of the table (in brackets "
    "that of Wilcoxon's signed ranks, uncorrected).",
    "Identity: evolved graphs of self-loops only, with the same parameters. A gain "
    "over the baseline that is none over identity does not come from evolved edges.",
)


def common_notes(selection: Selection, groups: Sequence[Sequence[Cell]]) -> list[str]:
    """Notes on the graphs shown, and on what was left out."""
    cells = [cell for group in groups for cell in group]
    notes = dataset_notes([selection.dataset(cell.key) for cell in cells])
    notes += explain(tag for cell in cells for tag in cell.key.tags)
    unfinished = sum(len(cell.incomplete) for cell in cells)
    if unfinished:
        notes.append(
            f"{unfinished} configurations have fewer finished trainings than others of "
            "their cell and could not be chosen."
        )
    if selection.left_out:
        notes.append(
            f"{selection.left_out} records of older numerics are not compared with "
            "newer ones and left out."
        )
    return notes


def dataset_notes(datasets: Sequence[DatasetInfo]) -> list[str]:
    """What must be said wherever a number on these graphs is shown."""
    noted = {info.name: info.note for info in datasets if info.note}
    return [f"{name}: {note}" for name, note in noted.items()]


def head_to_head(groups: Sequence[Sequence[Cell]]) -> list[str]:
    """Wins, ties and losses of the chosen ECG cells, as the paper counts its own."""
    notes = []
    for other in RIVALS:
        pairs = []
        for cells in groups:
            ecg = best_ecg(cells)
            rival = [] if ecg is None else _rivals(ecg, cells, other)
            if ecg is not None and rival:
                means = ecg.chosen.test_mean, rival[0].chosen.test_mean
                pairs.append((100 * means[0], 100 * means[1]))
        if pairs:
            notes.append(_counted(other, pairs))
    return notes


def _rivals(ecg: Cell, cells: Sequence[Cell], other: str) -> list[Cell]:
    """Cells of another variant with the options that the ECG cell has."""
    return [
        cell
        for cell in cells
        if cell.key.variant == other
        and cell.key == ecg.key.of_variant(other, cell.key.embedding)
    ]


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
