"""Single numbers of the paper's tables, by the names that this package uses.

Nothing here decides whether a number may stand beside a result of ours: callers must
make sure that the graph is the official one.
"""

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

DATASETS = ("roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions")
_MODELS = ("ResNet", "GCN", "SAGE", "GAT-sep", "GT-sep")
_QUOTED = ("H2GCN", "CPGNN", "GPR-GNN", "FSGNN", "GloGNN", "FAGCN", "GBK-GNN")
MODELS = {name.lower(): name for name in _MODELS}
"""The paper's names of models, by ours; so the next two."""
SPECIALISED = {name.lower(): name for name in (*_QUOTED, "JacobiConv")}
"""Models of the results table that the paper takes from elsewhere, without ECG."""
EMBEDDINGS = {"mlp": "MLP", "bgrl": "BGRL", "mlp+bgrl": "MLPBGRL", "mlp-gnn": "MLP→GNN"}
STATISTICS_K = 3
"""Neighbours per node in the evolved graphs of the statistics table."""
_STATISTIC_NAMES = {
    "num_edges": "edges",
    "edge_homophily": "edge homophily",
    "adjusted_homophily": "adjusted homophily",
    "label_informativeness": "LI",
}


class Score(NamedTuple):
    """Mean and standard deviation over the splits, in percent."""

    mean: float
    std: float


@cache
def read(name: str) -> dict[str, Any]:
    """One of the JSON files in the folder ``paper``."""
    text = files("ecg_gnn_lab").joinpath("paper", name).read_text(encoding="utf-8")
    return dict(json.loads(text))


def tables() -> dict[str, Any]:
    """Every number of the paper's four tables."""
    return read("tables.json")


def headline(dataset: str, model: str, *, ecg: bool) -> Score | None:
    """The results table: a plain model, or the best of its ECG variants."""
    if model == "resnet":
        name = None if ecg else "MLP"
    else:
        row = (MODELS | SPECIALISED).get(model)
        name = f"ECG-{row}" if ecg else row
    return _score("table_results", name, dataset)


def detailed(dataset: str, model: str, embedding: str | None) -> Score | None:
    """The detailed table: a plain model (None), or ECG from one embedding."""
    name = MODELS.get(model)
    if embedding is not None:
        name = f"{EMBEDDINGS.get(embedding)}-ECG-{name}"
    return _score("table_additional_results", name, dataset)


def _score(table: str, row: str | None, dataset: str) -> Score | None:
    score = tables()[table].get(row, {}).get(dataset)
    return None if score is None else Score(score["mean"], score["std"])


def statistic(dataset: str, embedding: str | None, key: str) -> float | None:
    """The statistics table: of G (None), or of the MLP's or BGRL's graph at k = 3."""
    if key not in _STATISTIC_NAMES or embedding not in (None, "mlp", "bgrl"):
        return None
    name = _STATISTIC_NAMES[key]
    if embedding is not None and key == "num_edges":
        name = f"ECG($k={STATISTICS_K}$) edges"
    elif embedding is not None:
        name = f"{EMBEDDINGS[embedding]}-ECG {name}"
    return cast(float | None, tables()["table_statistics"][name].get(dataset))


def best_hyperparameters(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best settings of a model, embedding included; what it lists."""
    table: dict[str, Any] = tables()["table_best_hparams"].get(MODELS.get(model), {})
    names = {"num_layers": "layers", "hidden_dim": "hidden"}
    best = {names.get(key, key): row.get(dataset) for key, row in table.items()}
    if "embedding" in best:
        ours = {theirs: name for name, theirs in EMBEDDINGS.items()}
        best["embedding"] = ours.get(best["embedding"], "none")
    return best


def count(pairs: Iterable[tuple[float, float]]) -> tuple[int, int, int]:
    """Wins, ties and losses as the paper counts them: means at their two decimals."""
    gaps = [round(ours, 2) - round(theirs, 2) for ours, theirs in pairs]
    return sum(g > 0 for g in gaps), gaps.count(0), sum(g < 0 for g in gaps)


def head_to_head() -> tuple[int, int, int]:
    """The paper's own count of ECG models against their plain models."""
    scores = [
        (headline(dataset, model, ecg=True), headline(dataset, model, ecg=False))
        for dataset in DATASETS
        for model in MODELS
    ]
    return count((ecg.mean, plain.mean) for ecg, plain in scores if ecg and plain)
