"""Published results by our names: the paper's, others', and which may be compared."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from ecg_gnn.data import CATALOGUE
from ecg_gnn.study.selection import Cell

PAPER = "ECG paper"  # the source of what its authors trained themselves
MODELS = ("resnet", "gcn", "sage", "gat-sep", "gt-sep")
"""Its models; numbers of others it takes from elsewhere"""
STATISTICS_K = 3  # neighbours per node in the evolved graphs of the statistics table


class Published(NamedTuple):
    """A result as its authors report it: mean and deviation over splits, in percent."""

    method: str
    mean: float
    std: float
    source: str
    unlike: str | None = None
    """How its protocol differs from ten official splits of the undirected graph"""
    model: str | None = None
    """Our name of the same model, if we have it"""


@cache
def read(name: str) -> Any:
    """One of the JSON files in the folder ``paper``."""
    text = files("ecg_gnn_lab").joinpath("paper", name).read_text(encoding="utf-8")
    return json.loads(text)


def headline(dataset: str, model: str, *, ecg: bool) -> Published | None:
    """The paper's results table: a plain model, or the best of its ECG variants."""
    return _of_paper("results", f"ecg {model}" if ecg else model, dataset)


def detailed(dataset: str, model: str, embedding: str | None) -> Published | None:
    """The paper's detailed table: a plain model (None), or ECG from one embedding."""
    return _of_paper("detailed", f"{model} {embedding or ''}".strip(), dataset)


def _of_paper(table: str, row: str, dataset: str) -> Published | None:
    score = read("tables.json")[table].get(row, {}).get(dataset)
    source = PAPER if {*MODELS} & {*row.split()} else f"quoted in the {PAPER}"
    return score and Published(row, source=source, **score)


def statistic(dataset: str, embedding: str | None, key: str) -> float | None:
    """The statistics table: of G (None), or of the MLP's or BGRL's graph at k = 3."""
    rows = read("tables.json")["statistics"].get(embedding or "G", {})
    value: float | None = rows.get(key, {}).get(dataset)
    return value


def best_hyperparameters(dataset: str, model: str) -> dict[str, Any]:
    """The paper's best settings of a model, embedding included; what it lists."""
    rows = read("tables.json")["best_settings"].get(model, {})
    return {name: row.get(dataset) for name, row in rows.items()}


def results(dataset: str) -> list[Published]:
    """Everything that others have published on a graph, best first."""
    found = []
    for method in read("published.json")["methods"]:
        if dataset in method["scores"]:
            about = {name: method.get(name) for name in ("source", "unlike", "model")}
            score = about | method["scores"][dataset]
            found.append(Published(method["name"], **score))
    return sorted(found, key=lambda each: -each.mean)


def best(dataset: str) -> list[Published]:
    """The highest result under the same protocol; several where they are equal."""
    alike = [each for each in results(dataset) if each.unlike is None]
    return [each for each in alike if each.mean == alike[0].mean]


def is_official(name: str, sha256: str) -> bool:
    """Whether a graph is the one that the literature has numbers for.

    A user's file may have any name, and other splits make another benchmark; both have
    another checksum. The substitute is in the catalogue, but not official.
    """
    entry = CATALOGUE.get(name)
    return entry is not None and entry.kind == "official" and entry.sha256 == sha256


def on_official_graph(cell: Cell) -> bool:
    """Whether a cell is on the graph and the splits that the literature has."""
    key = cell.key
    own = not key.random_splits and not key.label_rate
    return own and is_official(key.dataset, key.dataset_sha256)


def published_score(cell: Cell, *, in_detail: bool = False) -> Published | None:
    """What has been published on a cell's model: by the paper, else by its authors.

    Beside an ECG model stands the best of the paper's or, in detail, that of the same
    embedding. Nobody has published on the package's own options, or on a control.
    """
    key, paper, ecg = cell.key, None, cell.key.variant == "ecg"
    known = key.variant in ("baseline", "ecg") and not key.tags
    if not known or not on_official_graph(cell):
        return None
    if key.backbone == "benchmark" and ecg and in_detail:
        paper = detailed(key.dataset, key.model, key.embedding)
    elif key.backbone == "benchmark":
        paper = headline(key.dataset, key.model, ecg=ecg)
    alike = (each for each in results(key.dataset) if each.model == key.model_label)
    return paper if paper or ecg else next(alike, None)


def published_values(published: Published | None, ours: float | None) -> dict[str, Any]:
    """A published number as part of a raw row, and how far ours is above it."""
    names = ("mean", "std", "source", "unlike")
    row = {f"published_{name}": getattr(published, name, None) for name in names}
    above = None if published is None or ours is None else ours - published.mean
    return row | {"published_difference": above}
