"""What the evolved graph adds: ECG beside the plain model and the identity control."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from quoting import NOTHING, difference, signed, tables

from ecg_gnn.config.identity import LABELS
from ecg_gnn.data import CATALOGUE
from ecg_gnn.study import Store
from ecg_gnn.study.comparison import PairedTest, corrected
from ecg_gnn.study.selection import Candidate, Cell
from ecg_gnn.system.cells import markdown
from ecg_gnn_lab import published
from ecg_gnn_lab.report.summary import VERDICTS, answers, lede, verdict
from ecg_gnn_lab.tables.document import Row, score_text, score_values, starred
from ecg_gnn_lab.tables.scores import RIVALS, columns_of_test

# One network in which many evolved graphs were tried, as small and as it is published.
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


def answer_block(store: Store) -> str:
    """The answers of the report, in sentences."""
    ecg = _ecg(tables(store)["results"].rows)
    lines = [
        f"- *{each.question}* **{each.figure}.** {each.text}"
        for each in answers(ecg, tables(store)["embeddings"].rows)
    ]
    return "\n".join([lede(ecg), "", *lines])


def controls_block(store: Store) -> str:
    """ECG against the plain model and against identity, beside the paper's gain."""
    results = tables(store)["results"].rows
    rows = [r for r in _ecg(results) if r["published_source"] == published.PAPER]
    return control_table(rows, results, with_paper=True)


def substitute_block(store: Store) -> str:
    """The same on graphs whose features are not those of the paper."""
    results = tables(store)["results"].rows
    rows = [row for row in _ecg(results) if is_substitute(row["dataset"])]
    return control_table(rows, results, with_paper=False)


def embeddings_block(store: Store) -> str:
    """Models that were run with more than one embedding."""
    rows: list[Row] = []
    every = tables(store)["embeddings"].rows
    for _, group in groupby(every, key=lambda row: (row["dataset"], row["model"])):
        variants = list(group)
        if sum(row["variant"] == "ecg" for row in variants) > 1:
            rows += variants
    if not rows:
        return NOTHING
    rivals = _rivals(rows)
    header = ["dataset", "model", "variant", "validation", "test"]
    header += [f"− {name}" for name in rivals]
    return markdown((header, [_embedding_line(row, rivals) for row in rows]))


def front_page_block(store: Store) -> str:
    """One line per dataset and model of the paper, and the one sentence."""
    results = tables(store)["results"].rows
    shown = [row for row in _ecg(results) if row["model"] in published.MODELS]
    rivals = _rivals(shown)
    header = ["", "baseline", "ECG", *rivals[1:], "paper: baseline, ECG"]
    lines = []
    for row in shown:
        plain, *controls = (_rival(results, row, name) for name in rivals)
        paper = ", ".join("—" if p is None else f"{p.mean:.2f}" for p in _paper(row))
        lines.append([_name(row), plain, score_text(row), *controls, paper])
    return f"{markdown((header, lines))}\n\n{lede(shown)}"


def is_substitute(dataset: str) -> bool:
    """Whether a graph has other features than the published one of its name."""
    return dataset in CATALOGUE and CATALOGUE[dataset].kind == "substitute"


def _name(row: Row) -> str:
    """In one cell, so that the differences fit on the page."""
    return f"{row['dataset']}: {row['model']}, {row['embedding']} embedding"


def _ecg(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["variant"] == "ecg"]


def control_table(
    rows: Sequence[Row], results: Sequence[Row], *, with_paper: bool
) -> str:
    """ECG rows beside what they are compared with, and what follows."""
    if not rows:
        return NOTHING
    rivals = _rivals(rows)
    # Random edges are no rival whose lead counts, but tell what any edges do.
    random = ["random"] * any(row["variant"] == "random" for row in results)
    header = ["", "baseline", "ECG", *rivals[1:], *random]
    header += ["the paper's gain"] * with_paper
    header += [f"ECG − {name}" for name in rivals]
    header += ["so ECG is"]
    lines = []
    for row in rows:
        names = (*rivals, *random)
        plain, *controls = (_rival(results, row, name) for name in names)
        line = [_name(row), plain, score_text(row), *controls]
        line += [signed(_paper_gain(row))] * with_paper
        line += [difference(row, name) for name in rivals]
        lines.append([*line, VERDICTS[verdict(row)]])
    return markdown((header, lines))


def _rivals(rows: Sequence[Row]) -> list[str]:
    """What these rows are compared with."""
    return [name for name in RIVALS if any(f"minus_{name}" in row for row in rows)]


def _rival(results: Sequence[Row], row: Row, variant: str) -> str:
    for other in results:
        same = all(other[key] == row[key] for key in ("dataset", "model"))
        if same and other["variant"] == variant:
            return score_text(other)
    return "—"


def _paper(row: Row) -> list[published.Published | None]:
    """The paper's plain model and its best ECG, where it has some for this graph."""
    if row["published_source"] != published.PAPER:
        return [None, None]
    where = row["dataset"], row["model"]
    return [published.headline(*where, ecg=ecg) for ecg in (False, True)]


def _paper_gain(row: Row) -> float | None:
    plain, ecg = _paper(row)
    return None if plain is None or ecg is None else ecg.mean - plain.mean


def _embedding_line(row: Row, rivals: Sequence[str]) -> list[str]:
    scores = [f"{row['val_mean']:.2f}", score_text(row)]
    differences = [difference(row, name) for name in rivals]
    return [row["dataset"], row["model"], starred(row, "label"), *scores, *differences]


# --- One and the same network, whatever other sizes were tried ------------------------


_COMPARED = ("baseline", "identity")
"""What was run with this network."""


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
    best = {variant: _best(entries, variant) for variant in (*_COMPARED, "ecg")}
    if None in best.values():
        return NOTHING
    asked = [
        (entry, name)
        for entry in entries
        for name in _COMPARED
        if entry.cell.key.variant == "ecg"
    ]
    adjusted = corrected(
        entry.candidate.against(best[name].candidate, name) for entry, name in asked
    )
    names = [(entry.configuration, name) for entry, name in asked]
    tests = dict(zip(names, adjusted, strict=True))
    header = ["variant", "dropped", "MLP", "validation", "test"]
    header += [f"− {name}" for name in _COMPARED]
    lines = []
    for entry in sorted(entries, key=lambda entry: -entry.candidate.val_mean):
        label = entry.cell.label
        if entry in (best["ecg"], best["identity"]):
            label += " *"
        own = {name: tests.get((entry.configuration, name)) for name in _COMPARED}
        lines.append([label, *_line(entry, own)])
    return markdown((header, lines))


def _entries(store: Store, network: Row) -> list[_Entry]:
    """Those with the most finished splits; labels as input make another network."""
    entries = []
    for cell in tables(store).selection.cells:
        key = cell.key
        wanted = (key.dataset, key.backbone, key.model) == (DATASET, BACKBONE, MODEL)
        if wanted and LABELS not in key.tags:
            entries += [_Entry(cell, candidate) for candidate in cell.candidates]
    entries = [entry for entry in entries if _is(entry.candidate, network)]
    most = max((len(entry.candidate.records) for entry in entries), default=0)
    return [entry for entry in entries if len(entry.candidate.records) == most]


def _is(candidate: Candidate, network: Row) -> bool:
    return all(candidate.setting(name) == value for name, value in network.items())


def _best(entries: list[_Entry], variant: str) -> _Entry | None:
    """On validation."""
    rivals = [entry for entry in entries if entry.cell.key.variant == variant]
    return max(rivals, key=lambda entry: entry.candidate.val_mean, default=None)


def _line(entry: _Entry, tests: dict[str, PairedTest | None]) -> list[str]:
    candidate = entry.candidate
    config = candidate.configuration.config
    dropped, row = config["model"].get("drop_edge"), score_values(candidate)
    for name, test in tests.items():
        row |= columns_of_test(f"minus_{name}", test)
    return [
        "—" if dropped is None else f"{dropped:.0%}",
        _mlp(config["embed"]) if entry.cell.key.variant == "ecg" else "—",
        f"{100 * candidate.val_mean:.2f}",
        score_text(row),
        *(difference(row, name) for name in _COMPARED),
    ]


def _mlp(embed: Row) -> str:
    """The weak classifier that the evolved graph begins with."""
    return f"{embed['hidden']} wide, {embed['steps']} steps"
