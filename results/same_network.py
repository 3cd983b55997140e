"""Evolved graphs in one and the same network, whatever other sizes were tried."""

from typing import NamedTuple

from wording import NOTHING, difference, score

from ecg_gnn.study import Selection, Store
from ecg_gnn.study.paired import PairedTest, corrected
from ecg_gnn.study.selection import Candidate, Cell
from ecg_gnn.study.table import markdown
from ecg_gnn.study.tags import LABELS
from ecg_gnn_lab.tables.document import Row
from ecg_gnn_lab.tables.scores import columns_of_test

DATASET, BACKBONE, MODEL = "roman-empire-glove", "tuned", "sage"
SMALL = {
    "model.layers": 4,
    "model.hidden": 128,
    "model.dropout": 0.3,
    "train.steps": 1000,
    "train.lr": 5e-3,
}
PUBLISHED = {
    "model.layers": 9,
    "model.hidden": 256,
    "model.dropout": 0.3,
    "train.steps": 2500,
    "train.lr": 1e-3,
}
RIVALS = ("baseline", "identity")


class _Entry(NamedTuple):
    cell: Cell
    candidate: Candidate

    @property
    def configuration(self) -> str:
        return self.candidate.configuration.id


def small_network_block(store: Store) -> str:
    """The small network, in which most was tried."""
    return _block(_entries(store, SMALL))


def published_network_block(store: Store) -> str:
    """The network as it is published for roman-empire."""
    return _block(_entries(store, PUBLISHED))


def _block(entries: list[_Entry]) -> str:
    """Every variant against the plain network and its best identity.

    Holm's correction is over all tests of the table.
    """
    best = {variant: _best(entries, variant) for variant in (*RIVALS, "ecg")}
    if None in best.values():
        return NOTHING
    asked = [
        (entry, name)
        for entry in entries
        for name in RIVALS
        if entry.cell.key.variant == "ecg"
    ]
    found = corrected(
        entry.candidate.against(best[name].candidate, name) for entry, name in asked
    )
    names = [(entry.configuration, name) for entry, name in asked]
    tests = dict(zip(names, found, strict=True))
    header = ["variant", "dropped", "MLP", "validation", "test"]
    header += ["− plain", "− identity"]
    lines = []
    for entry in sorted(entries, key=lambda entry: -entry.candidate.val_mean):
        label = entry.cell.label
        if entry in (best["ecg"], best["identity"]):
            label += " *"
        own = {name: tests.get((entry.configuration, name)) for name in RIVALS}
        lines.append([label, *_line(entry, own)])
    return markdown((header, lines))


def _entries(store: Store, network: Row) -> list[_Entry]:
    """Those with the most finished splits; labels as input make another network."""
    found = []
    for cell in Selection.of(store).cells:
        key = cell.key
        wanted = (key.dataset, key.backbone, key.model) == (DATASET, BACKBONE, MODEL)
        if wanted and LABELS not in key.tags:
            found += [_Entry(cell, candidate) for candidate in cell.candidates]
    found = [entry for entry in found if _is(entry.candidate, network)]
    most = max((len(entry.candidate.records) for entry in found), default=0)
    return [entry for entry in found if len(entry.candidate.records) == most]


def _is(candidate: Candidate, network: Row) -> bool:
    return all(candidate.setting(name) == value for name, value in network.items())


def _best(entries: list[_Entry], variant: str) -> _Entry | None:
    """On validation."""
    found = [entry for entry in entries if entry.cell.key.variant == variant]
    return max(found, key=lambda entry: entry.candidate.val_mean, default=None)


def _line(entry: _Entry, tests: dict[str, PairedTest | None]) -> list[str]:
    candidate = entry.candidate
    config = candidate.configuration.config
    dropped, std = config["model"].get("drop_edge"), candidate.test_std
    row: Row = {
        "test_mean": 100 * candidate.test_mean,
        "test_std": None if std is None else 100 * std,
    }
    for name, test in tests.items():
        row |= columns_of_test(f"minus_{name}", test)
    return [
        "—" if dropped is None else f"{dropped:.0%}",
        _mlp(config["embed"]) if entry.cell.key.variant == "ecg" else "—",
        f"{100 * candidate.val_mean:.2f}",
        score(row),
        *(difference(row, name) for name in RIVALS),
    ]


def _mlp(embed: Row) -> str:
    """The weak classifier that the evolved graph begins with."""
    return f"{embed['hidden']} wide, {embed['steps']} steps"
