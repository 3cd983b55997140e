"""A graph with names for its nodes and classes, its columns, and its targets."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.data import graph_storage as storage
from ecg_gnn.data.catalogue import MANIFEST, is_graph_folder
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.data.graph_storage import ARRAYS, FORMAT, TARGETS, VERSION, entry
from ecg_gnn.evolve import defined_statistics
from ecg_gnn.system import files
from ecg_gnn.system.checks import InputError
from ecg_gnn.tabular.columns import Pairs, Table, as_text
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline

FEATURES = "features.npz"
_TARGETS_KEY = "targets"
_COLUMNS = ("id", "source", "target", "label")


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedGraph:
    """A graph with names for its nodes and classes, and the columns it came from.

    Examples:
        >>> from ecg_gnn.tabular import load_named_graph
        >>> graph = load_named_graph("csbm:nodes=60")
        >>> graph.dataset.num_nodes, graph.classes
        (60, ('0', '1'))
    """

    dataset: GraphDataset
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    columns: Mapping[str, str]
    """Which columns were the id, the label, source and target."""
    features: FeaturePipeline | None
    """Makes features of new rows; None if the graph came without columns."""
    report: Mapping[str, Any]
    """What the import found."""
    targets: NDArray[np.float64] | None = None
    """Of a regression, [N], NaN where unknown; the classes are equal parts of them."""

    def save(self, path: Path) -> None:
        """Write the folder whole or not at all; what is there already stays."""
        files.check_free(path)
        state, arrays = self.features.state() if self.features else (None, {})
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "directed": self.dataset.directed,
            "classes": list(self.classes),
            "columns": dict(self.columns),
            "features": state,
            "report": dict(self.report),
        }
        with files.writing(path), files.atomic_folder(path) as folder:
            files.write_json(folder / MANIFEST, manifest)
            graph = storage.graph_arrays(self.dataset, self.ids)
            storage.write_arrays(folder / ARRAYS, graph)
            storage.write_arrays(folder / FEATURES, arrays)
            if self.targets is not None:
                storage.write_arrays(folder / TARGETS, {_TARGETS_KEY: self.targets})


def read_columns(path: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Which columns were the id, the label, source and target."""
    columns: dict[str, str] = entry(manifest, "columns", dict, path)
    if {*columns} != {*_COLUMNS} or {*map(type, columns.values())} != {str}:
        raise InputError(
            f"{path}: 'columns' must name {list(_COLUMNS)} (got {columns!r:.60})"
        )
    return columns


def read_features(
    path: Path, manifest: Mapping[str, Any], num_features: int
) -> FeaturePipeline | None:
    """The feature pipeline of a graph's or a model's folder, if it has one."""
    if manifest.get("features") is None:
        return None
    state = entry(manifest, "features", dict, path)
    arrays = storage.read_folder_arrays(path / FEATURES)
    features = FeaturePipeline.from_state(str(path), state, arrays)
    if len(features.names) != num_features:
        raise InputError(f"{path}: the feature pipeline does not fit the features")
    return features


def read_targets(path: Path, dataset: GraphDataset) -> NDArray[np.float64] | None:
    """The targets of a graph's folder; None if it has classes."""
    if not (path / TARGETS).is_file():
        return None
    (targets,) = storage.read_folder_arrays(path / TARGETS, [_TARGETS_KEY]).values()
    is_row = targets.shape == (dataset.num_nodes,) and targets.dtype == np.float64
    unknown = dataset.y.numpy() == UNLABELLED
    if not is_row or (np.isfinite(targets) == unknown).any():
        raise InputError(
            f"{path / TARGETS}: must have a number for every node of a known class "
            f"(got {targets.dtype} {list(targets.shape)})"
        )
    return targets


def load_named_graph(
    spec: str | Path, data_root: str | Path | None = None
) -> NamedGraph:
    """Load a graph folder, or any other dataset with numbers for names.

    Examples:
        >>> load_named_graph("csbm:nodes=60").ids[:3]
        ('0', '1', '2')
    """
    path = files.expanded(spec)
    if is_graph_folder(path):
        dataset, ids, classes, manifest = storage.read_graph_folder(path)
        return NamedGraph(
            dataset=dataset,
            ids=ids,
            classes=classes,
            columns=read_columns(path, manifest),
            features=read_features(path, manifest, dataset.num_features),
            report=entry(manifest, "report", dict, path),
            targets=read_targets(path, dataset),
        )
    dataset = load_dataset(str(spec), data_root=data_root)
    return NamedGraph(
        dataset=dataset,
        ids=tuple(map(str, range(dataset.num_nodes))),
        classes=tuple(map(str, range(dataset.num_classes))),
        columns={name: name for name in _COLUMNS},
        features=None,
        report={"homophily": homophily(dataset)},
    )


def homophily(dataset: GraphDataset) -> dict[str, float | int | None]:
    """All measures, over edges whose two ends have a class; null if undefined."""
    labelled = dataset.labelled_part(dataset.edge_index)
    return defined_statistics(*labelled, directed=dataset.directed)


def number_nodes(table: Table, column: str) -> dict[str, int]:
    """The number of every node by its name; refuses a name that occurs twice."""
    numbers: dict[str, int] = {}
    for row, name in enumerate(table.names(column, "nodes")):
        if name in numbers:
            raise InputError(
                f"{table.source}: {column!r} must name every node once (got {name!r} "
                f"in rows {numbers[name] + 1} and {row + 1})"
            )
        numbers[name] = row
    return numbers


def pair_nodes(
    table: Table,
    source: str,
    target: str,
    numbers: Mapping[str, int],
    nodes: Table | None = None,
) -> Pairs:
    """Both ends of every edge as node numbers, ``[E, 2]``; refuses unknown nodes.

    The refusal suggests a column of ``nodes`` that has all names, if there is one.
    """
    names = {
        source: table.names(source, "edges' sources"),
        target: table.names(target, "edges' targets"),
    }
    if source in numbers and target in numbers:
        raise InputError(
            f"{table.source}: must have a header (the first row has the names of two "
            f"nodes, {source!r} and {target!r}, which would be lost as an edge)"
        )
    ends = {each: [numbers.get(n, -1) for n in names[each]] for each in names}
    for column, end in ends.items():
        if -1 in end:
            row = end.index(-1)
            counts = {each: codes.count(-1) for each, codes in ends.items()}
            parts = " and ".join(f"{n} in {name!r}" for name, n in counts.items())
            used = {*names[source], *names[target]}
            raise InputError(
                f"{table.source}: {column!r} must name nodes of the node table (got "
                f"{names[column][row]!r} in row {row + 1}; {sum(counts.values())} "
                f"unknown in total: {parts}){_other_id(nodes, used)}"
            )
    return np.array([ends[source], ends[target]], dtype=np.int64).T.copy()


def _other_id(nodes: Table | None, used: set[str]) -> str:
    """A suggestion of the column that names every node, among them those used."""
    for name, column in nodes.columns.items() if nodes else ():
        texts = {as_text(value) for value in column}
        if used <= texts and len(texts) == len(column):
            return f"; the column {name!r} has all of them: --id {quote(name)}"
    return ""
