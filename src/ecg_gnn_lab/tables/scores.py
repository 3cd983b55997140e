"""Tables of cells: the results, every embedding, and the best hyper-parameters."""

from collections.abc import Sequence
from typing import Any

from ecg_gnn.config.identity import controls_of, identity_control, variant_of
from ecg_gnn.study.comparison import PairedTest, corrected
from ecg_gnn.study.selection import Cell, CellKey, Selection, best_ecg
from ecg_gnn_lab import published
from ecg_gnn_lab.tables import document as doc

EDGES_GAIN = (
    "A gain is credited to the evolved edges only if ECG is above the plain network, "
    "identity and the embedding as features."
)
RIVALS = ("baseline", "identity", "embedding")
"""What every ECG row is compared with: its gain is the edges' if it beats them all."""
SURE = 0.05
"""Holm-corrected p below which a difference counts as more than chance."""
_SETTINGS = "model.layers model.hidden evolve.k model.drop_edge evolve.self_loops"
_BESIDE_PAPER = {"layers": "layers", "width": "hidden", "embedding": "embedding"}
_BESIDE_PAPER |= {"k": "k", "DropEdge": "drop_edge"}
"""Settings that the paper has, too: what they are called, and their names."""
_EXPLAINED = (
    "Mean ± sample standard deviation in percent over n trainings (splits × seeds); "
    "hyper-parameters were chosen by mean validation score, never by test.",
    "Differences are paired by split and seed, with Student's 95% interval; p is from "
    "the paired t-test, Holm-corrected over all ECG rows of the table (in brackets: "
    "from Wilcoxon's signed-rank test, uncorrected).",
    "Identity: the same network with self-loops for evolved edges. Embedding: the same "
    "vectors as further features, with identity's extra path and no new edge; no "
    "column means that it was not run.",
    EDGES_GAIN,
)
_UNEQUAL = "†: the two were trained in unequal precision."


def results_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model plain, with its best evolved graph, and with the controls."""
    groups = [_headline_cells(cells) for cells in source.selection.models()]
    title = "Results: the embedding of every ECG row was chosen on validation"
    return _document("results", title, source.selection, groups)


def embeddings_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model with every embedding that it was run with."""
    title = "Every embedding; * marks the one that validation chooses"
    return _document("embeddings", title, source.selection, source.selection.models())


def _headline_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Baseline, the chosen ECG, and the controls of its size and with its options."""
    ecg = best_ecg(cells)
    like = (ecg or cells[0]).key
    controls = [identity_control(1)]
    if ecg is not None:
        controls = [*controls_of(variant_of(str(ecg.key.embedding)))]
    wanted = [like.of_variant(c.name, c.embedding) for c in controls]
    return [
        cell
        for cell in cells
        if cell is ecg
        or cell.key in wanted
        or any(
            cell.key == like.of_variant(name, cell.key.embedding)
            for name in ("baseline", "random")
        )
    ]


def _document(
    name: str, title: str, selection: Selection, groups: Sequence[Sequence[Cell]]
) -> doc.TableDocument:
    """Scores, published ones, and paired differences with what chance allows."""
    detailed = name == "embeddings"
    best = [best_ecg(group) for group in groups]
    cells = [cell for group in groups for cell in group]
    run = {cell.key.variant for cell in selection.cells}
    rivals = [name for name in RIVALS if name != "embedding" or name in run]
    tests = _tests(selection, cells, rivals)
    rows = []
    for cell in cells:
        paper = published.paper_score(cell, in_detail=detailed)
        row = _row(selection, cell, cell in best, paper)
        for other in rivals:
            row |= columns_of_test(f"minus_{other}", tests[cell.key, other])
            rival = selection.rival(cell, other)
            unequal = rival and rival.chosen.precisions != cell.chosen.precisions
            row[f"minus_{other}_unequal"] = bool(unequal)
        rows.append(row | {"configuration": cell.chosen.configuration.id})
    shown = [(other, f"minus_{other}") for other in rivals]
    ours, *published_columns = doc.PUBLISHED_COLUMNS
    columns = [
        doc.Column("dataset", "dataset"),
        doc.Column("model", "model"),
        doc.Column("variant", "label", doc.starred if detailed else doc.plain_text),
        doc.Column("n", "units"),
        ours,
        *(
            doc.Column(f"− {other} [95% CI]", key, doc.difference_text, "tests")
            for other, key in shown
        ),
        *published_columns,
        *(
            doc.Column(f"− {other}, p", f"{key}_p_holm", _p_values, "tests")
            for other, key in shown
        ),
    ]
    notes = [*_head_to_head(selection, groups), *_EXPLAINED]
    unequal = any(row[f"{key}_unequal"] for row in rows for _, key in shown)
    notes += [_UNEQUAL] if unequal else []
    notes += doc.common_notes(selection, cells)
    return doc.TableDocument(
        name=name, title=title, columns=columns, rows=rows, notes=notes
    )


def _tests(
    selection: Selection, cells: Sequence[Cell], rivals: Sequence[str]
) -> dict[tuple[CellKey, str], PairedTest | None]:
    """Every cell against every rival; those of ECG rows are corrected together."""
    tests = {
        (c.key, other): selection.against(c, other) for c in cells for other in rivals
    }
    ecg = [pair for pair in tests if pair[0].variant == "ecg"]
    return tests | dict(zip(ecg, corrected(tests[pair] for pair in ecg), strict=True))


def _row(
    selection: Selection, cell: Cell, is_best: bool, paper: published.Score | None
) -> dict[str, Any]:
    chosen, mean = cell.chosen, 100 * cell.chosen.test_mean
    known = published.published_score(cell)
    if paper is not None and paper != published.paper_score(cell):
        known = published.Published(cell.key.model, *paper, published.DETAILED)
    return {
        "dataset": cell.key.graph_label,
        "model": cell.key.model_label,
        "variant": cell.key.variant,
        "embedding": cell.key.embedding,
        "label": cell.label,
        "best_on_validation": is_best,
        "metric": selection.dataset(cell.key).metric,
        "units": len(chosen.records),
        **doc.score_values(chosen),
        "paper_mean": None if paper is None else paper.mean,
        "paper_std": None if paper is None else paper.std,
        "paper_difference": None if paper is None else mean - paper.mean,
        **published.published_values(known, mean),
    }


def columns_of_test(prefix: str, test: PairedTest | None) -> dict[str, Any]:
    """A test as columns of a row, differences in points."""
    row: dict[str, Any] = {}
    for name in ("mean", "ci_low", "ci_high"):
        share = getattr(test, name, None)
        column = prefix if name == "mean" else f"{prefix}_{name}"
        row[column] = None if share is None else 100 * share
    for name in ("p", "p_wilcoxon", "p_holm"):
        row[f"{prefix}_{name}"] = getattr(test, name, None)
    return row


def compared_with(rows: Sequence[doc.Row]) -> list[str]:
    """The rivals that some of the rows were compared with."""
    return [o for o in RIVALS if any(row.get(f"minus_{o}") is not None for row in rows)]


def surely(row: doc.Row, other: str) -> int:
    """+1 or −1 where the difference from a rival is more than chance, else 0."""
    p, mean = row[f"minus_{other}_p_holm"], row[f"minus_{other}"]
    return 0 if p is None or p >= SURE else (mean > 0) - (mean < 0)


def _head_to_head(selection: Selection, groups: Sequence[Sequence[Cell]]) -> list[str]:
    """Wins, ties and losses of the chosen ECG cells, as the paper counts its own."""
    notes = []
    for other in RIVALS:
        pairs = []
        for cells in groups:
            ecg = best_ecg(cells)
            rival = None if ecg is None else selection.rival(ecg, other)
            if ecg is not None and rival is not None:
                means = ecg.chosen.test_mean, rival.chosen.test_mean
                pairs.append((100 * means[0], 100 * means[1]))
        wins, ties, losses = published.count(pairs)
        paper = "the paper has no such control"
        if other == "baseline":
            theirs = published.head_to_head()
            paper = "the paper: {}, {}, {} of {}".format(*theirs, sum(theirs))
        if pairs:
            notes.append(
                f"ECG against {other}, by means at two decimals: {wins} wins, "
                f"{ties} ties, {losses} losses of {len(pairs)} ({paper})."
            )
    return notes


def _p_values(row: doc.Row, key: str) -> str:
    holm, wilcoxon = row[key], row[key.replace("_holm", "_wilcoxon")]
    return "" if holm is None else f"{doc.p_text(holm)} ({doc.p_text(wilcoxon)})"


def hyperparameters_table(source: doc.StudyTables) -> doc.TableDocument:
    """What validation chose for every model: plain, with ECG, with identity."""
    cells: list[Cell] = []
    for group in source.selection.models():
        best, controls = best_ecg(group), ("baseline", "identity")
        cells += [c for c in group if c is best or c.key.variant in controls]
    return doc.TableDocument(
        name="hyperparameters",
        title="Best hyper-parameters by mean validation (the paper's in brackets)",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("model", "model"),
            doc.Column("variant", "label"),
            *(doc.Column(*n, _beside_paper, "settings") for n in _BESIDE_PAPER.items()),
            doc.Column("self-loops", "self_loops", part="settings"),
            doc.Column("validation (%)", "val_mean", lambda r, key: f"{r[key]:.2f}"),
            doc.Column("tried", "tried", part="tried"),
        ],
        rows=[_settings_row(cell) for cell in cells],
        notes=[
            "Tried: the number of configurations, also of those that were not trained "
            "as often as the others and so could not be chosen. A row with 1 was not "
            "searched: its settings were given.",
            "The paper lists one setting per model, that of its ECG variant.",
            *doc.common_notes(source.selection, cells),
        ],
    )


def _settings_row(cell: Cell) -> doc.Row:
    key, chosen = cell.key, cell.chosen
    row: dict[str, Any] = {
        "dataset": key.graph_label,
        "model": key.model_label,
        "variant": key.variant,
        "label": cell.label,
        "embedding": key.embedding,
    }
    row |= {name.partition(".")[2]: chosen.setting(name) for name in _SETTINGS.split()}
    if key.variant != "ecg":
        row["self_loops"] = row["embedding"] = None
    paper: dict[str, Any] = {}
    if published.in_paper(cell) and (key.variant == "ecg" or key.model == "resnet"):
        paper = published.best_hyperparameters(key.dataset, key.model)
    row |= {f"paper_{name}": paper.get(name) for name in _BESIDE_PAPER.values()}
    return row | {
        "val_mean": 100 * chosen.val_mean,
        "tried": len(cell.candidates) + len(cell.incomplete),
        "configuration": chosen.configuration.id,
    }


def _beside_paper(row: doc.Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    text = "—" if ours is None else str(ours)
    return text if paper is None else f"{text} ({paper})"
