"""A graph of one's own: what was imported, with names, features' origin and report."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.data.graph_folder import (
    ARRAYS,
    FORMAT,
    MANIFEST,
    VERSION,
    entry,
    graph_arrays,
    is_graph_folder,
    read_folder_arrays,
    read_graph_folder,
    write_arrays,
)
from ecg_gnn.reading import expanded
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_folder, write_json
from ecg_gnn.tabular.features import FeaturePipeline
from ecg_gnn.tabular.features.pipeline import array_names
from ecg_gnn.tabular.report import homophily

FEATURES = "features.npz"
_COLUMNS = ("id", "source", "target", "label")


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnGraph:
    """A graph, what its nodes and classes are called, and where features come from.

    Attributes:
        dataset: The graph as everything else in the package knows it.
        ids: The name of every node.
        classes: The name of every class.
        columns: Which columns were the id, the label, source and target.
        features: Makes features of tables with the same columns; None where the graph
            came without columns.
        report: What was found on the way in.

    Examples:
        >>> from ecg_gnn.tabular import load_own_graph
        >>> graph = load_own_graph("csbm:nodes=60")
        >>> graph.dataset.num_nodes, graph.classes
        (60, ('0', '1'))
    """

    dataset: GraphDataset
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    columns: Mapping[str, str]
    features: FeaturePipeline | None
    report: Mapping[str, Any]

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


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which output could not be written, and why."""
    try:
        yield
    except (OSError, SafetensorError) as error:  # the latter of a full disk, too
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be written ({reason})") from error


def check_free(path: Path) -> None:
    """Refuse an output folder that has something in it already."""
    try:
        taken = path.exists() and (not path.is_dir() or any(path.iterdir()))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror or error})"
        ) from error
    if taken:
        raise InputError(
            "'out' must not exist yet or be an empty folder: what is there is never "
            f"written over (got {path})"
        )


def load_graph(path: str | Path) -> OwnGraph:
    """Read a folder that ``save`` wrote."""
    path = expanded(path)
    found = read_graph_folder(path)
    manifest, features = found.manifest, None
    if manifest.get("features") is not None:
        features = read_features(path, manifest)
    if features is not None and len(features.names) != found.dataset.num_features:
        raise InputError(f"{path}: the feature pipeline does not fit the features")
    return OwnGraph(
        dataset=found.dataset,
        ids=found.ids,
        classes=found.classes,
        columns=read_columns(path, manifest),
        features=features,
        report=entry(manifest, "report", dict, path),
    )


def read_columns(path: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """Which columns were the id, the label, source and target."""
    found: dict[str, str] = entry(manifest, "columns", dict, path)
    if sorted(found) != sorted(_COLUMNS) or not all(
        isinstance(name, str) for name in found.values()
    ):
        raise InputError(
            f"{path}: 'columns' must name {list(_COLUMNS)} (got {found!r:.60})"
        )
    return found


def read_features(path: Path, manifest: Mapping[str, Any]) -> FeaturePipeline:
    """The feature pipeline of a graph's or a model's folder."""
    state = entry(manifest, "features", dict, path)
    arrays = read_folder_arrays(path / FEATURES, array_names(str(path), state))
    return FeaturePipeline.from_state(str(path), state, arrays)


def load_own_graph(spec: str, data_root: str | Path | None = None) -> OwnGraph:
    """A graph folder, or any other dataset with numbers for names.

    Examples:
        >>> load_own_graph("csbm:nodes=60").ids[:3]
        ('0', '1', '2')
    """
    path = expanded(spec)
    if is_graph_folder(path):
        return load_graph(path)
    dataset = load_dataset(spec, data_root=data_root)
    return OwnGraph(
        dataset=dataset,
        ids=tuple(map(str, range(dataset.num_nodes))),
        classes=tuple(map(str, range(dataset.num_classes))),
        columns={"id": "id", "source": "source", "target": "target", "label": "label"},
        features=None,
        report={"homophily": homophily(dataset)},
    )
