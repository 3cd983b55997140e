"""Predictions for the nodes of a model's own graph, and for new nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.data.graph_checks import UNLABELLED, canonical_edge_index
from ecg_gnn.ensemble.certainty import class_sets, sorted_errors, usual_error
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.model_folder import Model
from ecg_gnn.system.cells import safe_cell
from ecg_gnn.system.checks import InputError, check_choice, check_in_range
from ecg_gnn.system.files import atomic_path, writing
from ecg_gnn.tabular.columns import Table
from ecg_gnn.tabular.named_graph import number_nodes, pair_nodes
from ecg_gnn.tabular.table_files import WRITABLE_SUFFIXES, write_table

SET_SEPARATOR = " | "
_SHARE_DIGITS, _NUMBER_DIGITS = 6, 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Class probabilities ``[n, C]`` of some nodes, with notes for the user.

    Attributes:
        num_new: Number of nodes that are not in the model's graph.
        notes: Warnings, such as nodes without edges.
        sets: Which classes a node's conformal set has. ``[n, C]``
        multipliers: Factor of each class when one is chosen; all 1: the most probable.
        half_width: Half the interval around predicted numbers, which have no classes
            and one column of "probabilities".

    Examples:
        >>> names = {"ids": ("n1",), "classes": ("no", "yes")}
        >>> shares = np.array([[0.3, 0.7]])
        >>> found = Predictions(**names, probabilities=shares, num_new=0)
        >>> found.columns()["predicted"]
        ['yes']
    """

    ids: tuple[str, ...]
    probabilities: NDArray[np.float64]
    classes: tuple[str, ...]
    num_new: int
    notes: tuple[str, ...] = ()
    sets: NDArray[np.bool_] | None = None
    multipliers: tuple[float, ...] = (1.0,)
    half_width: float | None = None

    def columns(self) -> dict[str, list[Any]]:
        """As table columns: id, what is predicted, and how sure that is.

        Classes come with every probability, numbers with their interval; ``set`` names
        the classes of a conformal set.
        """
        columns: dict[str, list[Any]] = {"id": list(self.ids)}
        shares, width = self.probabilities, self.half_width
        if not self.classes:
            columns["predicted"] = shares[:, 0].tolist()
            if width is not None:
                columns["low"] = (shares[:, 0] - width).tolist()
                columns["high"] = (shares[:, 0] + width).tolist()
            return columns
        said = (shares * self.multipliers).argmax(axis=1)
        columns["predicted"] = [self.classes[each] for each in said]
        columns["probability"] = shares[np.arange(len(said)), said].tolist()
        if self.sets is not None:
            chosen = [compress(self.classes, row) for row in self.sets]
            columns["set"] = [SET_SEPARATOR.join(names) for names in chosen]
        for name, each in zip(self.classes, shares.T.tolist(), strict=True):
            columns[f"p_{name}"] = each
        return columns

    def with_coverage(self, model: Model, coverage: float | None) -> "Predictions":
        """With sets, or intervals, that contain the truth with this probability.

        This holds for nodes that are drawn like the labelled ones.
        """
        if coverage is None:
            return self
        check_in_range("coverage", coverage, 0.5, 0.999)
        fitted, dataset = model.classifier, model.dataset
        if isinstance(fitted, Ensemble):
            errors = fitted.errors
        else:  # on nodes that chose the step and calibrated, but were not trained on
            held_out = dataset.val_masks[0].numpy()
            said, y = fitted.probabilities()[held_out], dataset.y.numpy()[held_out]
            errors = sorted_errors(said, y, is_number=False)
        if not self.classes:
            return replace(self, half_width=usual_error(errors, coverage))
        sets = class_sets(errors, self.probabilities, coverage)
        return replace(self, sets=sets)

    def write(self, path: Path, *, safe_csv: bool = True) -> None:
        """Write a .csv, .tsv or .parquet file, whole or not at all.

        In a text, names that a spreadsheet would compute are marked unless ``safe_csv``
        is off, and numbers have only meaningful digits.
        """
        check_choice(f"ending of {path}", path.suffix.lower(), WRITABLE_SUFFIXES)
        columns = self.columns()
        if path.suffix.lower() != ".parquet":
            digits = _SHARE_DIGITS if self.classes else _NUMBER_DIGITS

            def cell(value: str | float) -> str:
                if not isinstance(value, str):
                    return f"{value:.{digits}g}"
                return str(safe_cell(value)) if safe_csv else value

            columns = {name: list(map(cell, each)) for name, each in columns.items()}
        with writing(path), atomic_path(path) as temporary:
            write_table(temporary, columns)


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
    shares = model.classifier.probabilities()[chosen]
    ids = tuple(compress(model.ids, chosen))
    return Predictions(
        ids=ids,
        probabilities=shares,
        classes=model.classes,
        num_new=0,
        multipliers=model.classifier.multipliers,
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
        >>> from ecg_gnn.inference import fit_model
        >>> from ecg_gnn.tabular import ImportOptions, Table, import_tables
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
    ends = new_edges[:, new_edges[0] != new_edges[1]]
    if isolated := len(new) - len(ends[ends >= len(stored)].unique()):
        evolved = model.classifier.evolved is not None
        notes.append(
            f"{isolated} of {len(new)} new nodes have no edges: they are predicted by "
            f"their own features{' and evolved neighbours' if evolved else ''} alone "
            "(give their edges, if any)"
        )
    new_x = x[[rows[name] for name in new]]
    probabilities = model.classifier.probabilities(new_x, new_edges)
    known = [name for name in rows if name in stored]
    ours = model.dataset.x[[stored[name] for name in known]]
    if changed := int((x[[rows[name] for name in known]] != ours).any(1).sum()):
        notes.append(
            f"{_nodes(changed)} other features than in the model's graph: the old ones "
            "were used (fit again to use the new ones)"
        )
    for column, cells in model.features.unseen(nodes).items():
        notes.append(
            f"{_nodes(len(cells))} a {column!r} that the model has never seen, such as "
            f"{cells[0]!r}: predicted without it"
        )
    return Predictions(
        ids=tuple(rows),
        probabilities=probabilities[[numbers[name] for name in rows]],
        classes=model.classes,
        num_new=len(new),
        notes=tuple(notes),
        multipliers=model.classifier.multipliers,
    )


def _nodes(count: int) -> str:
    return "1 node has" if count == 1 else f"{count:,} nodes have"


def _new_edges(
    model: Model, edges: Table | None, numbers: Mapping[str, int]
) -> tuple[Tensor, list[str]]:
    """Edges with at least one new end, both ways if undirected, and notes."""
    if edges is None:
        return torch.empty(2, 0, dtype=torch.long), []
    columns, directed = model.columns, model.dataset.directed
    pairs = pair_nodes(edges, columns["source"], columns["target"], numbers)
    edge_index = canonical_edge_index(pairs, len(numbers), directed)
    is_old = (edge_index < len(model.ids)).all(0)
    keys = torch.tensor([len(numbers), 1])  # one number for both ends of an edge
    given, known = keys @ edge_index[:, is_old], keys @ model.dataset.edge_index
    notes = []
    if unknown := int((~torch.isin(given, known)).sum()) // (1 if directed else 2):
        notes.append(
            f"{unknown} edges between nodes of the model's graph are not in it and "
            "were left out (fit again to use them)"
        )
    return edge_index[:, ~is_old], notes
