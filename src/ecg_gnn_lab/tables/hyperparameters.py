"""The best hyper-parameters, chosen on validation, beside the paper's."""

from typing import Any

from ecg_gnn.config.identity import tagged
from ecg_gnn.study.selection import Cell, best_ecg
from ecg_gnn_lab import paper_numbers
from ecg_gnn_lab.published import in_paper
from ecg_gnn_lab.tables.document import Column, Row, Source, TableDocument, common_notes

_SETTINGS = {
    "layers": "model.layers",
    "hidden": "model.hidden",
    "k": "evolve.k",
    "drop_edge": "model.drop_edge",
    "self_loops": "evolve.self_loops",
}
_BESIDE_PAPER = {
    "layers": "layers",
    "hidden": "width",
    "embedding": "embedding",
    "k": "k",
    "drop_edge": "DropEdge",
}


def hyperparameters_table(source: Source) -> TableDocument:
    """What validation chose for every model: plain, with ECG, with identity."""
    cells: list[Cell] = []
    for group in source.selection.models():
        best, controls = best_ecg(group), ("baseline", "identity")
        cells += [c for c in group if c is best or c.key.variant in controls]
    columns = [
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("variant", "shown"),
        *(
            Column(title, key, _beside_paper, "settings")
            for key, title in _BESIDE_PAPER.items()
        ),
        Column("self-loops", "self_loops", part="settings"),
        Column("validation (%)", "val_mean", lambda row, key: f"{row[key]:.2f}"),
        Column("tried", "tried", part="tried"),
    ]
    return TableDocument(
        name="hyperparameters",
        title="Best hyper-parameters by mean validation (the paper's in brackets)",
        columns=columns,
        rows=[_row(cell) for cell in cells],
        notes=[
            "Tried: configurations of the row, also those that were not trained as "
            "often as the others and so could not be chosen. A row with one was not "
            "searched: its settings were given.",
            "The paper lists one setting per model, that of its ECG variant.",
            *common_notes(source.selection, cells),
        ],
    )


def _row(cell: Cell) -> Row:
    key, chosen = cell.key, cell.chosen
    row: dict[str, Any] = {
        "dataset": key.dataset,
        "model": key.model_label,
        "variant": key.variant,
        "shown": tagged(key.variant, key.tags),
        "label": cell.label,
        "embedding": key.embedding,
    }
    row |= {name: chosen.setting(dotted) for name, dotted in _SETTINGS.items()}
    if key.variant != "ecg":
        row["self_loops"] = row["embedding"] = None
    paper: dict[str, Any] = {}
    if in_paper(cell) and (key.variant == "ecg" or key.model == "resnet"):
        paper = paper_numbers.best_hyperparameters(key.dataset, key.model)
    row |= {f"paper_{name}": paper.get(name) for name in _BESIDE_PAPER}
    return row | {
        "val_mean": 100 * chosen.val_mean,
        "tried": len(cell.candidates) + len(cell.incomplete),
        "configuration": chosen.configuration.id,
    }


def _beside_paper(row: Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    text = "—" if ours is None else str(ours)
    return text if paper is None else f"{text} ({paper})"
