"""Predictions for the nodes of a model's own graph, and for new nodes."""

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
from ecg_gnn.tabular.importing import number_nodes, pair_nodes
from ecg_gnn.tabular.table_files import WRITABLE_SUFFIXES, write_table


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Class probabilities of some nodes, with notes for the user.

    Attributes:
        ids: Names of the nodes.
        probabilities: ``[n, C]``.
        classes: The name of every class.
        num_new: Number of nodes that are not in the model's graph.
        notes: Warnings, such as nodes without edges.

    Examples:
        >>> shares = np.array([[0.3, 0.7]])
        >>> predictions = Predictions(
        ...     ids=("n1",), probabilities=shares, classes=("no", "yes"), num_new=0
        ... )
        >>> predictions.columns()["predicted"]
        ['yes']
    """

    ids: tuple[str, ...]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...]
    num_new: int
    notes: tuple[str, ...] = ()

    def columns(self) -> dict[str, list[Any]]:
        """As table columns: id, predicted class, its probability, all probabilities."""
        best = self.probabilities.argmax(axis=1)
        columns: dict[str, list[Any]] = {
            "id": list(self.ids),
            "predicted": [self.classes[place] for place in best],
            "probability": self.probabilities.max(axis=1).tolist(),
        }
        for place, name in enumerate(self.classes):
            columns[f"p_{name}"] = self.probabilities[:, place].tolist()
        return columns

    def write(self, path: Path) -> None:
        """Write a .csv, .tsv or .parquet file, whole or not at all."""
        check_choice(f"ending of {path}", path.suffix.lower(), WRITABLE_SUFFIXES)
        with writing(path), atomic_path(path) as temporary:
            write_table(temporary, self.columns())


def predict_stored(model: Model, *, every: bool = False) -> Predictions:
    """Predict nodes of the model's own graph: those without a class, or all of them.

    Examples:
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> model = fit_model(graph, Path("model"), steps=2)
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
    """Predict the nodes of a table; new ones join the model's graph.

    Args:
        model: The model.
        nodes: A row per node, with the columns that the model knows. Nodes of the
            model's graph keep the features that are stored there.
        edges: Edges of new nodes, to each other and to nodes of the model's graph.
        most: See :func:`ecg_gnn.reading.check_cells`.

    Examples:
        >>> from ecg_gnn.tabular import ImportOptions, Table
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import import_tables
        >>> names = [f"n{i}" for i in range(12)]
        >>> columns = {"id": names, "size": list("123456" * 2), "kind": list("ab" * 6)}
        >>> pairs = Table("edges", {"source": names[1:], "target": names[:-1]})
        >>> options = ImportOptions(label="kind")
        >>> graph = import_tables(Table("nodes", columns), pairs, options)
        >>> model = fit_model(graph, Path("model"), steps=2)
        >>> new = Table("new", {"id": ["x"], "size": ["3"]})
        >>> predict_nodes(model, new, None).num_new
        1
    """
    if model.features is None:
        raise InputError(
            "the model was fitted on a graph without columns to make features of: it "
            "can only predict that graph's own nodes"
        )
    rows = number_nodes(nodes, model.columns["id"])  # row of every id
    x = torch.from_numpy(model.features.transform(nodes, most=most))
    stored = {name: place for place, name in enumerate(model.ids)}
    new = [name for name in rows if name not in stored]
    numbers = stored | {name: len(stored) + place for place, name in enumerate(new)}
    new_edges, notes = _new_edges(model, edges, numbers)
    if isolated := _count_isolated(new_edges, len(stored), len(numbers)):
        evolved = model.classifier.evolved is not None
        notes.append(
            f"{isolated} of {len(new)} new nodes have no edges: they are predicted by "
            f"their own features{' and evolved neighbours' if evolved else ''} alone "
            "(give their edges, if any)"
        )
    new_rows = torch.tensor([name not in stored for name in rows])
    probabilities = model.classifier.probabilities(x[new_rows], new_edges)
    notes += _feature_notes(model, nodes, x, stored, rows)
    return Predictions(
        ids=tuple(rows),
        probabilities=probabilities[[numbers[name] for name in rows]],
        classes=model.classes,
        num_new=len(new),
        notes=tuple(notes),
    )


def _feature_notes(
    model: Model,
    nodes: Table,
    x: Tensor,
    stored: Mapping[str, int],
    rows: Mapping[str, int],
) -> list[str]:
    """Say which features were not used as they stand in the table."""
    assert model.features is not None
    notes = []
    known = [name for name in rows if name in stored]
    ours = model.dataset.x[[stored[name] for name in known]]
    if changed := int((x[[rows[name] for name in known]] != ours).any(1).sum()):
        notes.append(
            f"{changed} nodes have other features than in the model's graph: the old "
            "ones were used (fit again to use the new ones)"
        )
    for column, cells in model.features.unseen(nodes).items():
        notes.append(
            f"{len(cells)} nodes have a {column!r} that the model has never seen, such "
            f"as {cells[0]!r}: they are predicted without it"
        )
    return notes


def _count_isolated(new_edges: Tensor | None, num_stored: int, num_nodes: int) -> int:
    """Number of new nodes, which follow the stored ones, without an edge."""
    joined = torch.zeros(num_nodes, dtype=torch.bool)
    if new_edges is not None:
        joined[new_edges[:, new_edges[0] != new_edges[1]].flatten()] = True
    return int((~joined[num_stored:]).sum())


def _new_edges(
    model: Model, edges: Table | None, numbers: Mapping[str, int]
) -> tuple[Tensor | None, list[str]]:
    """Edges with at least one new end, both ways if undirected, and notes."""
    if edges is None:
        return None, []
    columns, directed = model.columns, model.dataset.directed
    pairs = pair_nodes(edges, columns["source"], columns["target"], numbers)
    num_nodes, old = len(numbers), model.dataset.edge_index
    edge_index = canonical_edge_index(pairs, num_nodes, directed)
    is_old = (edge_index < len(model.ids)).all(0)
    between = edge_index[:, is_old]
    known = torch.isin(between[0] * num_nodes + between[1], old[0] * num_nodes + old[1])
    notes = []
    if unknown := int((~known).sum()):
        unknown = unknown if directed else unknown // 2
        notes.append(
            f"{unknown} edges between nodes of the model's graph are not in it and "
            "were left out (fit again to use them)"
        )
    return edge_index[:, ~is_old], notes
