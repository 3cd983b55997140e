"""Predictions for nodes of a model's own graph, and for nodes that come later."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.data.dataset import canonical_edge_index
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.files import atomic_path, writing
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.file_types import WRITABLE_SUFFIXES, write_table
from ecg_gnn.tabular.importing import number_nodes, pair_nodes

ENDINGS = WRITABLE_SUFFIXES


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Probabilities of some nodes, and what was noticed on the way.

    Attributes:
        ids: Names of the nodes.
        probabilities: ``[n, C]``.
        classes: The name of every class.
        num_new: How many of the nodes the model had never seen.
        notes: What a user should know.

    Examples:
        >>> shares = np.array([[0.3, 0.7]])
        >>> found = Predictions(
        ...     ids=("n1",), probabilities=shares, classes=("no", "yes"), num_new=0
        ... )
        >>> found.columns()["predicted"]
        ['yes']
    """

    ids: tuple[str, ...]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...]
    num_new: int
    notes: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """As a table: id, predicted class, its probability, all probabilities."""
        best = self.probabilities.argmax(axis=1)
        found: dict[str, list[Any]] = {
            "id": list(self.ids),
            "predicted": [self.classes[place] for place in best],
            "probability": self.probabilities.max(axis=1).tolist(),
        }
        for place, name in enumerate(self.classes):
            found[f"p_{name}"] = self.probabilities[:, place].tolist()
        return found

    def write(self, path: Path) -> None:
        """Write a .csv, .tsv or .parquet file, whole or not at all."""
        check_choice(f"ending of {path}", path.suffix.lower(), ENDINGS)
        with writing(path), atomic_path(path) as temporary:
            write_table(temporary, self.columns())


def predict_stored(model: Model, *, every: bool = False) -> Predictions:
    """Predict nodes of the model's own graph: those without a class, or every one.

    Examples:
        >>> from ecg_gnn.inference import FitOptions, fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, FitOptions(steps=2), Path("model"))
        >>> predict_stored(model, every=True).probabilities.shape
        (60, 2)
    """
    chosen = (model.dataset.y == UNLABELLED).numpy() | every
    if not chosen.any():
        raise InputError(
            "every node of the model's graph has a class: give 'nodes' to predict, or "
            "ask for all of them"
        )
    places = np.flatnonzero(chosen)
    return Predictions(
        ids=tuple(model.ids[place] for place in places),
        probabilities=model.classifier.probabilities()[places],
        classes=model.classes,
        num_new=0,
    )


def predict_nodes(
    model: Model, nodes: Table, edges: Table | None, *, most: int | None = None
) -> Predictions:
    """Predict the nodes of a table, new ones joined to the model's graph.

    Args:
        model: The model.
        nodes: A row per node, with the columns that the model knows; nodes that its
            graph has are predicted with the features it has of them.
        edges: Edges of new nodes, to each other and to nodes of the model's graph.
        most: See :func:`ecg_gnn.reading.check_cells`.

    Examples:
        >>> from ecg_gnn.inference import FitOptions
        >>> from ecg_gnn.tabular import ImportOptions, Table
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import import_tables
        >>> names = [f"n{i}" for i in range(12)]
        >>> columns = {"id": names, "size": list("123456" * 2), "kind": list("ab" * 6)}
        >>> pairs = Table("edges", {"source": names[1:], "target": names[:-1]})
        >>> options = ImportOptions(label="kind")
        >>> graph = import_tables(Table("nodes", columns), pairs, options)
        >>> model = fit_model(graph, FitOptions(steps=2), Path("model"))
        >>> new = Table("new", {"id": ["x"], "size": ["3"]})
        >>> predict_nodes(model, new, None).num_new
        1
    """
    if model.features is None:
        raise InputError(
            "the model was fitted on a graph without columns (not by `ecg-gnn data "
            "import`): it can only predict that graph's own nodes"
        )
    named = number_nodes(nodes, model.columns["id"])
    x = torch.from_numpy(model.features.transform(nodes, most=most))
    stored = {name: place for place, name in enumerate(model.ids)}
    is_new = [name not in stored for name in named]
    numbers = dict(stored)
    for name in named:
        numbers.setdefault(name, len(numbers))
    new_edges, notes = _new_edges(model, edges, numbers)
    if alone := _without_edges(new_edges, len(stored), len(numbers)):
        evolved = model.classifier.evolved is not None
        notes.append(
            f"{alone} of {sum(is_new)} new nodes have no edges: they are predicted by "
            f"their own features{' and evolved neighbours' if evolved else ''} alone "
            "(give their edges, if any)"
        )
    proba = model.classifier.probabilities(x[torch.tensor(is_new)], new_edges)
    known = [name for name in named if name in stored]
    rows, places = [named[name] for name in known], [stored[name] for name in known]
    if changed := int((x[rows] != model.dataset.x[places]).any(1).sum()):
        notes.append(
            f"{changed} nodes have other features than in the model's graph: the old "
            "ones were used (fit again to use the new ones)"
        )
    for column, cells in model.features.unseen(nodes).items():
        notes.append(
            f"{len(cells)} nodes have a {column!r} that the model has never seen, such "
            f"as {cells[0]!r}: they are predicted without it"
        )
    return Predictions(
        ids=tuple(named),
        probabilities=proba[[numbers[name] for name in named]],
        classes=model.classes,
        num_new=sum(is_new),
        notes=tuple(notes),
    )


def _without_edges(new_edges: Tensor | None, num_stored: int, count: int) -> int:
    """How many of the nodes after the stored ones no edge reaches or leaves."""
    joined = torch.zeros(count, dtype=torch.bool)
    if new_edges is not None:
        joined[new_edges[:, new_edges[0] != new_edges[1]].flatten()] = True
    return int((~joined[num_stored:]).sum())


def _new_edges(
    model: Model, edges: Table | None, numbers: Mapping[str, int]
) -> tuple[Tensor | None, list[str]]:
    """Edges with a new node at one end at least, both ways if undirected."""
    if edges is None:
        return None, []
    columns = model.columns
    pairs = pair_nodes(edges, columns["source"], columns["target"], numbers)
    num_stored, count = len(model.ids), len(numbers)
    found = canonical_edge_index(pairs, count, model.dataset.directed)
    inside = (found < num_stored).all(0)
    old = model.dataset.edge_index
    known = torch.isin(
        found[0, inside] * count + found[1, inside], old[0] * count + old[1]
    )
    notes = []
    if more := int((~known).sum()):
        more = more if model.dataset.directed else more // 2
        notes.append(
            f"{more} edges between nodes of the model's graph are not in it and were "
            "left out (fit again to use them)"
        )
    return found[:, ~inside], notes
