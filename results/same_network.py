"""Evolved graphs in one and the same network, whatever other sizes were tried."""

from typing import NamedTuple

from wording import NOTHING, difference, score

from ecg_gnn.study import Selection, Store
from ecg_gnn.study.paired import PairedTest, corrected, paired_test
from ecg_gnn.study.paper_tables.document import Row
from ecg_gnn.study.paper_tables.scores import columns_of_test
from ecg_gnn.study.selection import Candidate, Cell
from ecg_gnn.study.table import markdown

DATASET, BACKBONE, MODEL = "roman-empire-glove", "tuned", "sage"
LAYERS, HIDDEN = 4, 128
RIVALS = ("baseline", "identity")


class _Entry(NamedTuple):
    cell: Cell
    candidate: Candidate

    @property
    def name(self) -> str:
        return self.candidate.configuration.id

    def against(self, rival: "_Entry", name: str) -> PairedTest:
        ours, theirs = self.candidate.tests, rival.candidate.tests
        return paired_test([ours[pair] - theirs[pair] for pair in theirs], name)


def same_network_block(store: Store) -> str:
    """Every variant of that network against its plain form and its best identity.

    Holm's correction is over all tests of the table.
    """
    entries = _entries(store)
    best = {variant: _best(entries, variant) for variant in (*RIVALS, "ecg")}
    if None in best.values():
        return NOTHING
    asked = [
        (entry, name)
        for entry in entries
        for name in RIVALS
        if entry.cell.key.variant == "ecg"
    ]
    found = corrected(entry.against(best[name], name) for entry, name in asked)
    names = [(entry.name, name) for entry, name in asked]
    tests = dict(zip(names, found, strict=True))
    header = ["variant", "dropped", "validation", "test", "− plain", "− identity"]
    lines = []
    for entry in sorted(entries, key=lambda entry: -entry.candidate.val_mean):
        label = entry.cell.label
        if entry in (best["ecg"], best["identity"]):
            label += " *"
        row = _row(entry, {name: tests.get((entry.name, name)) for name in RIVALS})
        differences = [difference(row, name) for name in RIVALS]
        val = f"{row['val_mean']:.2f}"
        lines.append([label, row["dropped"], val, score(row), *differences])
    return markdown((header, lines))


def _entries(store: Store) -> list[_Entry]:
    found = []
    for cell in Selection.of(store).cells:
        key = cell.key
        if (key.dataset, key.backbone, key.model) == (DATASET, BACKBONE, MODEL):
            found += [_Entry(cell, candidate) for candidate in cell.candidates]
    return [entry for entry in found if _is_of_size(entry.candidate)]


def _is_of_size(candidate: Candidate) -> bool:
    size = candidate.setting("model.layers"), candidate.setting("model.hidden")
    return size == (LAYERS, HIDDEN)


def _best(entries: list[_Entry], variant: str) -> _Entry | None:
    """On validation."""
    found = [entry for entry in entries if entry.cell.key.variant == variant]
    return max(found, key=lambda entry: entry.candidate.val_mean, default=None)


def _row(entry: _Entry, tests: dict[str, PairedTest | None]) -> Row:
    candidate = entry.candidate
    dropped = candidate.configuration.config["model"].get("drop_edge")
    std = candidate.test_std
    row = {
        "dropped": "—" if dropped is None else f"{dropped:.0%}",
        "val_mean": 100 * candidate.val_mean,
        "test_mean": 100 * candidate.test_mean,
        "test_std": None if std is None else 100 * std,
    }
    for name, test in tests.items():
        row |= columns_of_test(f"minus_{name}", test)
    return row
