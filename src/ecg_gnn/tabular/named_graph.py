"""A graph with names for its nodes and classes, its columns, and its import report."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.data import GraphDataset, describe, load_dataset
from ecg_gnn.data.catalogue import is_graph_folder
from ecg_gnn.data.graph_storage import (
    ARRAYS,
    FORMAT,
    MANIFEST,
    VERSION,
    entry,
    graph_arrays,
    read_folder_arrays,
    read_graph_folder,
    write_arrays,
)
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.reading import expanded
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_folder, check_free, write_json, writing
from ecg_gnn.tabular.columns import (
    Table,
    first_non_number,
    parse_numbers,
    present_texts,
)
from ecg_gnn.tabular.feature_pipeline import FeaturePipeline

FEATURES = "features.npz"
_COLUMNS = ("id", "source", "target", "label")
# A column with this share of numbers is meant to be numbers; the rest are likely typos.
_NEARLY_ALL = 0.95
# A class needs a node each for training, validation and test.
_MIN_CLASS_SIZE = 3


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
    """Numbers to predict, NaN where unknown; None if classes are predicted."""

    def save(self, path: Path) -> None:
        """Write the folder whole or not at all; what is there already stays."""
        check_free(path)
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
        with writing(path), atomic_folder(path) as folder:
            write_json(folder / MANIFEST, manifest)
            write_arrays(folder / ARRAYS, graph_arrays(self.dataset, self.ids))
            write_arrays(folder / FEATURES, arrays)


def read_columns(path: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Which columns were the id, the label, source and target."""
    columns: dict[str, str] = entry(manifest, "columns", dict, path)
    are_texts = all(isinstance(name, str) for name in columns.values())
    if sorted(columns) != sorted(_COLUMNS) or not are_texts:
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
    arrays = read_folder_arrays(path / FEATURES)
    features = FeaturePipeline.from_state(str(path), state, arrays)
    if len(features.names) != num_features:
        raise InputError(f"{path}: the feature pipeline does not fit the features")
    return features


def load_named_graph(
    spec: str | Path, data_root: str | Path | None = None
) -> NamedGraph:
    """Load a graph folder, or any other dataset with numbers for names.

    Examples:
        >>> load_named_graph("csbm:nodes=60").ids[:3]
        ('0', '1', '2')
    """
    path = expanded(spec)
    if is_graph_folder(path):
        dataset, ids, classes, manifest = read_graph_folder(path)
        return NamedGraph(
            dataset=dataset,
            ids=ids,
            classes=classes,
            columns=read_columns(path, manifest),
            features=read_features(path, manifest, dataset.num_features),
            report=entry(manifest, "report", dict, path),
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


# --- The report of an import ----------------------------------------------------------


def describe_import(
    dataset: GraphDataset,
    classes: tuple[str, ...],
    features: FeaturePipeline,
    nodes: Table,
    pairs: NDArray[np.int64],
) -> dict[str, Any]:
    """Sizes, classes, homophily, components, isolated nodes, imbalance, columns."""
    graph = describe(dataset)
    counts = graph["class_counts"]
    missing = {
        name: nodes.num_rows - len(present_texts(nodes.columns[name]))
        for name in features.columns
    }
    num_loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    shape = ("isolated_nodes", "connected_components", "degree", "features")
    return {
        **{key: graph[key] for key in ("nodes", "edges", "directed")},
        "self_loops_dropped": num_loops,
        "duplicate_edges_dropped": len(pairs) - num_loops - dataset.num_edges,
        **{key: graph[key] for key in shape},
        "columns": features.kinds(),
        "missing_values": {name: count for name, count in missing.items() if count},
        "columns_left_out": dict(features.dropped),
        "duplicate_feature_rows": graph["duplicate_feature_rows"],
        "classes": dict(zip(classes, counts, strict=True)),
        "unlabelled_nodes": graph["unlabelled_nodes"],
        "imbalance": max(counts) / min(counts),
        "metric": graph["metric"],
        "splits": len(graph["splits"]),
        "first_split": graph["splits"][0],
        "homophily": homophily(dataset),
    }


def homophily(dataset: GraphDataset) -> dict[str, float | int | None]:
    """All measures, over edges whose two ends have a class; null if undefined."""
    edges, y = dataset.labelled_part(dataset.edge_index)
    measures = graph_statistics(edges, y, directed=dataset.directed)
    return {k: None if math.isnan(v) else v for k, v in measures.items()}


def import_warnings(
    nodes: Table,
    columns: Sequence[str],
    classes: Mapping[str, int],
    label: str,
) -> list[str]:
    """Warnings of ``columns`` that are nearly numbers, and of rare or similar classes.

    Examples:
        >>> cells = [str(row) for row in range(39)] + ["forty"]
        >>> table = Table("nodes.csv", {"age": cells})
        >>> import_warnings(table, ["age"], {"a": 30, "b": 10}, "kind")[0][:58]
        "'age' is not read as numbers: 39 of 40 values are, but not"
    """
    notes = [_nearly_numbers(nodes, name) for name in columns]
    notes += [_rare_classes(classes, label), _alike_classes(classes, label)]
    return [note for note in notes if note is not None]


def _nearly_numbers(nodes: Table, name: str) -> str | None:
    if parse_numbers(nodes.columns[name]) is not None:
        return None
    values = present_texts(nodes.columns[name])
    numbers = sum(parse_numbers([value]) is not None for value in values)
    if numbers < _NEARLY_ALL * len(values):
        return None
    row, text = first_non_number(nodes.columns[name])
    return (
        f"{name!r} is not read as numbers: {numbers} of {len(values)} values are, but "
        f"not {text!r:.60} in row {row} (mend it, or empty it)"
    )


def _rare_classes(classes: Mapping[str, int], label: str) -> str | None:
    rare = [name for name, count in classes.items() if count < _MIN_CLASS_SIZE]
    if not rare:
        return None
    names = ", ".join(f"{name!r:.40}" for name in rare[:3])
    more = f" and {len(rare) - 3} more" if len(rare) > 3 else ""
    return (
        f"{len(rare)} of {len(classes)} classes have fewer than {_MIN_CLASS_SIZE} "
        f"nodes, too few to train, choose and test on ({names}{more}): join them with "
        f"others, or is {label!r} not the column of classes?"
    )


def _alike_classes(classes: Mapping[str, int], label: str) -> str | None:
    first: dict[str, str] = {}
    for name in classes:
        other = first.setdefault(" ".join(name.split()).casefold(), name)
        if other != name:
            return (
                f"{label!r} has classes that differ in spaces or capitals only, such "
                f"as {other!r:.60} and {name!r:.60}: are they one?"
            )
    return None
