"""A graph of one's own as a folder: arrays in an .npz file, the rest in JSON.

``graph.json`` says what the graph is (format and version first), ``graph.npz`` has its
arrays, and ``features.npz`` those of the pipeline that made the features from columns.
File names are fixed: nothing that a file says is ever used as a path.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.checks import InputError
from ecg_gnn.data.archive import read_archive
from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.data.validate import GRAPH_KEYS, MASK_KEYS, AnyArray
from ecg_gnn.files import sha256_of_file

MANIFEST, ARRAYS = "graph.json", "graph.npz"
FORMAT, VERSION = "ecg-gnn graph", 1
_IDS = "node_ids"


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFolder:
    """A graph with what its nodes and classes are called.

    Attributes:
        dataset: The graph; -1 in ``y`` where the class is not known.
        ids: The name of every node.
        classes: The name of every class.
        manifest: Everything that ``graph.json`` says.
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
    source = path / ARRAYS
    arrays = read_folder_arrays(source, [*GRAPH_KEYS, *MASK_KEYS, _IDS])
    ids = arrays[_IDS]
    if ids.dtype.kind != "U" or ids.ndim != 1:
        raise InputError(f"{source}: {_IDS!r} must be texts [N] (got {ids.dtype})")
    train, val, test = (arrays[key] for key in MASK_KEYS)
    dataset = make_dataset(
        name=path.resolve().name,  # never a name that the file claims
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=(train, val, test),
        directed=bool(entry(manifest, "directed", bool, path)),
        unlabelled=True,
        sha256=sha256_of_file(source),
        source=str(source),
    )
    classes = entry(manifest, "classes", list, path)
    named = len(classes) == dataset.num_classes and len(ids) == dataset.num_nodes
    if not named or not all(isinstance(name, str) for name in classes):
        raise InputError(f"{path}: every class and every node must have one name")
    return GraphFolder(
        dataset=dataset,
        ids=tuple(ids.tolist()),
        classes=tuple(classes),
        manifest=manifest,
    )


def graph_arrays(dataset: GraphDataset, ids: tuple[str, ...]) -> dict[str, AnyArray]:
    """What ``graph.npz`` holds of a graph."""
    return {
        "node_features": dataset.x.numpy(),
        "node_labels": dataset.y.numpy(),
        "edges": dataset.edge_index.t().contiguous().numpy(),
        "train_masks": dataset.train_masks.numpy(),
        "val_masks": dataset.val_masks.numpy(),
        "test_masks": dataset.test_masks.numpy(),
        _IDS: np.array(ids, dtype=np.str_),
    }


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write an .npz file of plain arrays into a folder that is not yet in place."""
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))


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
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"{path}: cannot be read ({reason})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: must be JSON (got {error})") from error
    if not isinstance(found, dict) or found.get("format") != kind:
        raise InputError(f"{path}: must say that it is an {kind!r} (it does not)")
    if found.get("version") != version:
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
