"""An imported graph as a folder: arrays in an .npz file, the rest in JSON.

``graph.json`` says what the graph is (format and version first), ``graph.npz`` has its
arrays, and ``features.npz`` those of the pipeline that made the features from columns.
Large features may lie in ``node_features.npy``, see ``ecg_gnn.data.npz_graph``. File
names are fixed: nothing that a file says is ever used as a path.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.data.dataset import GraphDataset
from ecg_gnn.data.graph_checks import FEATURES_KEY, GRAPH_KEYS, MASK_KEYS, AnyArray
from ecg_gnn.data.npz_graph import (
    add_features_file,
    dataset_from_arrays,
    joint_sha256,
    npz_arrays,
)
from ecg_gnn.data.npz_graph import write_arrays as write_arrays
from ecg_gnn.reading import read_archive, read_json
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file

MANIFEST, ARRAYS = "graph.json", "graph.npz"
FORMAT, VERSION = "ecg-gnn graph", 1
_IDS = "node_ids"


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFolder:
    """A graph with the names of its nodes and classes.

    Attributes:
        dataset: The graph; -1 in ``y`` where the class is unknown.
        ids: The name of every node.
        classes: The name of every class.
        manifest: The contents of ``graph.json``.
    """

    dataset: GraphDataset
    ids: tuple[str, ...]
    classes: tuple[str, ...]
    manifest: Mapping[str, Any]


def is_graph_folder(path: Path) -> bool:
    """Whether a folder says that it holds a graph."""
    try:
        return (path / MANIFEST).is_file()
    except OSError:  # a name that no file can have
        return False


def read_graph_folder(path: Path) -> GraphFolder:
    """Read a folder that ``ecg-gnn data import`` wrote; anything odd is refused."""
    manifest = read_manifest(path / MANIFEST, FORMAT, VERSION)
    source, features_file = path / ARRAYS, path / f"{FEATURES_KEY}.npy"
    needed = [*GRAPH_KEYS, *MASK_KEYS, _IDS]
    if features_file.is_file():
        needed.remove(FEATURES_KEY)
    arrays = read_folder_arrays(source, needed)
    dataset = dataset_from_arrays(
        source,
        add_features_file(source, features_file, arrays),
        name=path.resolve().name,  # never a name that the file claims
        directed=bool(entry(manifest, "directed", bool, path)),
        unlabelled=True,
        sha256=joint_sha256(sha256_of_file(source), features_file),
    )
    return GraphFolder(
        dataset=dataset,
        ids=node_names(source, arrays[_IDS], dataset.num_nodes),
        classes=class_names(path, manifest, dataset.num_classes),
        manifest=manifest,
    )


def node_names(source: Path, ids: AnyArray, num_nodes: int) -> tuple[str, ...]:
    """A name for every node, no two the same."""
    found = ids.tolist() if ids.dtype.kind == "U" and ids.ndim == 1 else []
    if len(found) != num_nodes or len(set(found)) != num_nodes:
        raise InputError(
            f"{source}: {_IDS!r} must name each of {num_nodes} nodes once (got "
            f"{ids.dtype} {list(ids.shape)}, {len(set(found))} different)"
        )
    return tuple(found)


def class_names(
    path: Path, manifest: Mapping[str, Any], num_classes: int
) -> tuple[str, ...]:
    """A name for every class, no two the same."""
    found = entry(manifest, "classes", list, path)
    are_texts = all(isinstance(name, str) for name in found)
    if not are_texts or len(found) != num_classes or len(set(found)) != num_classes:
        raise InputError(
            f"{path}: 'classes' must name each of {num_classes} classes once (got "
            f"{found!r:.60})"
        )
    return tuple(found)


def graph_arrays(dataset: GraphDataset, ids: tuple[str, ...]) -> dict[str, AnyArray]:
    """The arrays of ``graph.npz``, with every edge as it is stored in memory."""
    names: AnyArray = np.array(ids, dtype=np.str_)
    return npz_arrays(dataset, dataset.edge_index) | {_IDS: names}


def read_folder_arrays(path: Path, needed: list[str]) -> dict[str, AnyArray]:
    """Arrays that must all be in an .npz file."""

    def check(names: set[str]) -> None:
        if missing := sorted(set(needed) - names):
            raise InputError(f"{path}: arrays missing: {missing}")

    if not path.is_file():
        raise InputError(f"{path}: must be there (the folder is incomplete)")
    return read_archive(path, needed, check)


def read_manifest(path: Path, kind: str, version: int) -> dict[str, Any]:
    """A JSON object that says what it is; another kind or version is refused."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path}: cannot be read ({reason})") from error
    found = read_json(str(path), text)
    if not isinstance(found, dict) or found.get("format") != kind:
        raise InputError(f"{path}: must say that it is an {kind!r} (it does not)")
    if found.get("version") != version or type(found["version"]) is not int:
        raise InputError(
            f"{path}: must be of version {version}, which this program reads (got "
            f"{found.get('version')!r}, written by another version of it)"
        )
    return found


def entry(manifest: Mapping[str, Any], name: str, kind: type, path: Path) -> Any:
    """One entry of a manifest, which must be of a type."""
    value = manifest.get(name)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(
            f"{path}: {name!r} must be of type {kind.__name__} (got {value!r:.60})"
        )
    return value
