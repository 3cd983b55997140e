"""Tables of cells: the results, every embedding, and the best hyper-parameters."""

from collections.abc import Sequence
from typing import Any

from ecg_gnn.study.comparison import PairedTest, corrected
from ecg_gnn.study.selection import Cell, Selection, best_ecg
from ecg_gnn_lab import published
from ecg_gnn_lab.tables import document as doc

RIVALS = ("baseline", "identity", "embedding")
"""What every ECG row is compared with: its gain is the edges' if it beats them all."""
SURE = 0.05  # Holm-corrected p below which a difference counts as more than chance
_SETTINGS = "model.layers model.hidden evolve.k model.drop_edge evolve.self_loops"
"""Of the chosen configuration, as raw columns; a report shows all settings."""
_BESIDE_PAPER = {"layers": "layers", "width": "hidden", "embedding": "embedding"}
_BESIDE_PAPER |= {"k": "k", "DropEdge": "drop_edge"}
"""Settings that the paper has, too: what they are called, and their names."""
_EXPLAINED = (
    "Mean ± sample standard deviation in percent over n trainings (splits × seeds); "
    "hyper-parameters were chosen by mean validation score, never by test.",
    "Differences are paired by split and seed, with Student's 95% interval; p is from "
    "the paired t-test, Holm-corrected over all ECG rows of the table (in brackets: "
    "from Wilcoxon's signed-rank test, uncorrected). †: trained in unequal precision.",
    "Identity: the same network with self-loops for evolved edges. Embedding: the same "
    "vectors as further features, with identity's extra path and no new edge; no "
    "column means that it was not run.",
    "A gain is credited to the evolved edges only if ECG is above the plain network, "
    "identity and the embedding as features.",
)


def results_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model plain, with its best evolved graph, and with the controls."""
    selection = source.selection
    cells = [c for group in selection.models() for c in _headline(selection, group)]
    title = "Results: the embedding of every ECG row was chosen on validation"
    return _score_table("results", title, selection, cells)


def embeddings_table(source: doc.StudyTables) -> doc.TableDocument:
    """Every model with every embedding that it was run with."""
    title = "Every embedding; * marks the one that validation chooses"
    cells = source.selection.cells
    return _score_table("embeddings", title, source.selection, cells)


def _headline(selection: Selection, group: Sequence[Cell]) -> list[Cell]:
    """The chosen ECG of a model with the controls of its size and with its options."""
    ecg = best_ecg(group)
    if ecg is None:
        return [c for c in group if c.key.variant in ("baseline", "identity", "random")]
    shown = [ecg, *(selection.rival(ecg, other) for other in RIVALS)]
    return [
        cell
        for cell in group
        if cell in shown or cell.key == ecg.key.of_variant("random", cell.key.embedding)
    ]


def _score_table(
    name: str, title: str, selection: Selection, cells: Sequence[Cell]
) -> doc.TableDocument:
    """Scores, published ones, and paired differences with what chance allows."""
    detailed = name == "embeddings"
    run = {cell.key.variant for cell in selection.cells}
    rivals = [name for name in RIVALS if name != "embedding" or name in run]
    rows = _score_rows(selection, cells, rivals, detailed)
    shown = [(other, f"minus_{other}") for other in rivals]
    ours, *published_columns = doc.PUBLISHED_COLUMNS
    columns = [
        doc.Column("dataset", "dataset"),
        doc.Column("model", "model"),
        doc.Column("variant", "label", doc.starred if detailed else doc.plain_text),
        doc.Column("n", "units"),
        ours,
        *(doc.Column(f"− {o} [95% CI]", key, doc.difference_text) for o, key in shown),
        *published_columns,
        *(doc.Column(f"− {o}, p", f"{key}_p_holm", _p_values) for o, key in shown),
    ]
    notes = [*_EXPLAINED, *doc.common_notes(selection, cells)]
    return doc.TableDocument(
        name=name, title=title, columns=columns, rows=rows, notes=notes
    )


def _score_rows(
    selection: Selection, cells: Sequence[Cell], rivals: Sequence[str], detailed: bool
) -> Sequence[doc.Row]:
    """A row per cell; the tests of ECG rows are corrected together."""
    best = [best_ecg(group) for group in selection.models()]
    tests = {(c.key, o): selection.against(c, o) for c in cells for o in rivals}
    ecg = [pair for pair in tests if pair[0].variant == "ecg"]
    tests |= dict(zip(ecg, corrected(tests[pair] for pair in ecg), strict=True))
    rows = []
    for cell in cells:
        key, chosen = cell.key, cell.chosen
        known = published.published_score(cell, in_detail=detailed)
        row = {
            "dataset": key.graph_label,
            "model": key.model_label,
            "variant": key.variant,
            "embedding": key.embedding,
            "label": cell.label,
            "best_on_validation": cell in best,
            "metric": selection.dataset(key).metric,
            "units": len(chosen.records),
            **doc.score_values(chosen),
            **published.published_values(known, 100 * chosen.test_mean),
        }
        for other in rivals:
            row |= columns_of_test(f"minus_{other}", tests[key, other])
            rival = selection.rival(cell, other)
            unequal = rival and rival.chosen.precisions != chosen.precisions
            row[f"minus_{other}_unequal"] = bool(unequal)
        row |= {n.partition(".")[2]: chosen.setting(n) for n in _SETTINGS.split()}
        row["tried"] = len(cell.candidates) + len(cell.incomplete)
        rows.append(row | {"configuration": chosen.configuration.id})
    return rows


def columns_of_test(prefix: str, test: PairedTest | None) -> dict[str, Any]:
    """A test as columns of a row, differences in points."""
    row: dict[str, Any] = {}
    for name in ("", "_ci_low", "_ci_high"):
        share = getattr(test, name[1:] or "mean", None)
        row[prefix + name] = None if share is None else 100 * share
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


def _p_values(row: doc.Row, key: str) -> str:
    holm, wilcoxon = row[key], row[key.replace("_holm", "_wilcoxon")]
    return "" if holm is None else f"{doc.p_text(holm)} ({doc.p_text(wilcoxon)})"


def hyperparameters_table(source: doc.StudyTables) -> doc.TableDocument:
    """What validation chose for every model: plain, with ECG, with identity."""
    every = source["embeddings"]
    shown = [
        row
        for row in every.rows
        if row["best_on_validation"] or row["variant"] in ("baseline", "identity")
    ]
    return doc.TableDocument(
        name="hyperparameters",
        title="Best hyper-parameters by mean validation (the paper's in brackets)",
        columns=[
            doc.Column("dataset", "dataset"),
            doc.Column("model", "model"),
            doc.Column("variant", "label"),
            *(doc.Column(*names, _beside_paper) for names in _BESIDE_PAPER.items()),
            doc.Column("self-loops", "self_loops"),
            doc.Column("validation (%)", "val_mean", lambda r, key: f"{r[key]:.2f}"),
            doc.Column("tried", "tried"),
        ],
        rows=[_with_paper(row) for row in shown],
        notes=[
            "Tried: the number of configurations, also of those that were not trained "
            "as often as the others and so could not be chosen. A row with 1 was not "
            "searched: its settings were given.",
            "The paper lists one setting per model, that of its ECG variant.",
            *every.notes[len(_EXPLAINED) :],
        ],
    )


def _with_paper(row: doc.Row) -> doc.Row:
    """The settings of a row, those of the paper beside."""
    ecg, paper = row["variant"] == "ecg", dict[str, Any]()
    if row["published_source"] == published.PAPER and (ecg or row["model"] == "resnet"):
        paper = published.best_hyperparameters(row["dataset"], row["model"])
    unread = {} if ecg else {"embedding": None, "self_loops": None}
    return {
        **{n: v for n, v in row.items() if not n.startswith(("minus_", "published_"))},
        **unread,
        **{f"paper_{name}": paper.get(name) for name in _BESIDE_PAPER.values()},
    }


def _beside_paper(row: doc.Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    text = "—" if ours is None else str(ours)
    return text if paper is None else f"{text} ({paper})"
