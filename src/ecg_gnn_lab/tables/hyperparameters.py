"""The best hyper-parameters, chosen on validation, beside the paper's."""

from functools import partial
from typing import Any

from ecg_gnn.config.tags import tagged
from ecg_gnn.study.selection import Cell, best_ecg
from ecg_gnn_lab.paper import numbers
from ecg_gnn_lab.paper.published import official
from ecg_gnn_lab.tables.document import (
    Column,
    Row,
    Source,
    TableDocument,
    common_notes,
)

_SETTINGS = {
    "layers": "model.layers",
    "hidden": "model.hidden",
    "k": "evolve.k",
    "drop_edge": "model.drop_edge",
    "self_loops": "evolve.self_loops",
}
_TITLES = {
    "layers": "layers",
    "hidden": "width",
    "embedding": "embedding",
    "k": "k",
    "drop_edge": "DropEdge",
}


def hyperparameters_table(source: Source) -> TableDocument:
    """What validation chose for every model: plain, with ECG, with identity."""
    selection = source.selection
    groups = []
    for cells in selection.models():
        best = best_ecg(cells)
        shown = [c for c in cells if c.key.variant in ("baseline", "identity")]
        groups.append([*shown, best] if best is not None else shown)
        groups[-1].sort(key=cells.index)
    rows = [_row(cell) for cells in groups for cell in cells]
    return TableDocument(
        name="hyperparameters",
        title="Best hyper-parameters by mean validation (the paper's in brackets)",
        columns=_columns(),
        rows=rows,
        notes=[
            "Tried: configurations of the row, also those that were not trained as "
            "often as the others and so could not be chosen. A row with one was not "
            "searched: its settings were given.",
            "The paper lists one setting per model, that of its ECG variant.",
            *common_notes(selection, groups),
        ],
    )


def _row(cell: Cell) -> Row:
    chosen = cell.chosen
    row: dict[str, Any] = {
        "dataset": cell.key.dataset,
        "model": cell.key.model_label,
        "variant": cell.key.variant,
        "shown": tagged(cell.key.variant, cell.key.tags),
        "label": cell.label,
        "embedding": cell.key.embedding,
    }
    row |= {name: chosen.setting(dotted) for name, dotted in _SETTINGS.items()}
    if cell.key.variant != "ecg":
        row["self_loops"] = row["embedding"] = None
    paper = _paper(cell)
    row |= {f"paper_{name}": paper.get(name) for name in _TITLES}
    return row | {
        "val_mean": 100 * chosen.val_mean,
        "tried": len(cell.candidates) + len(cell.incomplete),
        "configuration": chosen.configuration.id,
    }


def _paper(cell: Cell) -> dict[str, Any]:
    """The paper's settings where it has some for this very graph and model."""
    key = cell.key
    lists = key.variant == "ecg" or key.model == "resnet"
    if not (official(cell) and lists):
        return {}
    return numbers.best_hyperparameters(key.dataset, key.model)


def _columns() -> list[Column]:
    return [
        Column("dataset", "dataset"),
        Column("model", "model"),
        Column("variant", "shown"),
        *(
            Column(title, key, partial(_beside_paper, key=key), "settings")
            for key, title in _TITLES.items()
        ),
        Column("self-loops", "self_loops", part="settings"),
        Column("validation (%)", "val_mean", lambda row: f"{row['val_mean']:.2f}"),
        Column("tried", "tried", part="tried"),
    ]


def _beside_paper(row: Row, key: str) -> str:
    ours, paper = row[key], row[f"paper_{key}"]
    shown = "—" if ours is None else str(ours)
    return shown if paper is None else f"{shown} ({paper})"
