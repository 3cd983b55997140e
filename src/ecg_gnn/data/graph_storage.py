"""Graphs on disk: the benchmark's .npz files and graph folders, both untrusted.

A graph folder has ``graph.json`` (what the graph is; format and version first), its
arrays in ``graph.npz``, and in ``features.npz`` those of the pipeline that made the
features from columns. File names are fixed: nothing in a file is ever used as a path.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ecg_gnn.data.catalogue import MANIFEST
from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.data.graph_checks import GRAPH_KEYS, MASK_KEYS, check_keys
from ecg_gnn.reading import (
    AnyArray,
    check_file,
    read_archive,
    read_json,
    read_text,
    refusing,
)
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path, sha256_of_file, writing

ARRAYS = "graph.npz"
TARGETS = "targets.npz"  # of a regression
FORMAT, VERSION = "ecg-gnn graph", 1
# Ours, beside the benchmark's keys, and written for directed graphs only: the
# benchmark has none, and its readers ignore keys that they do not know.
DIRECTED_KEY = "directed"
NAMES_KEY = "node_ids"


def read_npz(
    path: str | Path,
    name: str,
    *,
    expected_sha256: str | None = None,
    metric: str | None = None,
    note: str = "",
) -> GraphDataset:
    """Read one graph in the format of Platonov et al. (2023); see :func:`make_dataset`.

    The arrays are ``node_features`` [N, F], ``node_labels`` [N], ``edges`` [E, 2] (an
    undirected edge once) and ``train_masks``, ``val_masks``, ``test_masks`` [S, N].
    Without masks the graph gets ten stratified splits from seed 0. A file with another
    checksum than ``expected_sha256`` is refused.
    """
    path = Path(path)
    if (digest := _digest(path)) != (expected_sha256 or digest):
        raise InputError(
            f"{path}: sha256 must be {expected_sha256} (got {digest}): the file is "
            "damaged or of another version; remove it, and it is downloaded again"
        )
    keys = [*GRAPH_KEYS, *MASK_KEYS, DIRECTED_KEY]
    arrays = read_archive(path, keys, partial(check_keys, str(path)))
    named = {"name": name, "metric": metric, "sha256": digest, "note": note}
    directed = is_directed(path, arrays)
    return dataset_from_arrays(path, arrays, directed=directed, **named)


def _digest(path: Path) -> str:
    check_file(path)
    with refusing(str(path), "a whole .npz file"):
        return sha256_of_file(path)


def dataset_from_arrays(
    path: Path, arrays: Mapping[str, AnyArray], **options: Any
) -> GraphDataset:
    """The graph whose arrays an .npz file has, under the names of the format."""
    if MASK_KEYS[0] in arrays:
        options["masks"] = [arrays[key] for key in MASK_KEYS]
    x, y, edges = (arrays[key] for key in GRAPH_KEYS)
    return make_dataset(x=x, y=y, edges=edges, source=str(path), **options)


def is_directed(path: Path, arrays: Mapping[str, AnyArray]) -> bool:
    """Whether a file says that (u, v) differs from (v, u)."""
    directed = arrays.get(DIRECTED_KEY, np.False_)
    if directed.dtype.kind != "b" or directed.shape != ():
        raise InputError(
            f"{path}: {DIRECTED_KEY!r} must be one boolean "
            f"(got {directed.dtype} {list(directed.shape)})"
        )
    return bool(directed)


def graph_arrays(
    dataset: GraphDataset, ids: tuple[str, ...] | None = None
) -> dict[str, AnyArray]:
    """A graph's arrays under the names of the format, with edges as in memory."""
    graph = (dataset.x, dataset.y, dataset.edge_index.t().contiguous())
    masks = (getattr(dataset, key) for key in MASK_KEYS)
    named = zip((*GRAPH_KEYS, *MASK_KEYS), (*graph, *masks), strict=True)
    names = {} if ids is None else {NAMES_KEY: np.array(ids, dtype=np.str_)}
    return {key: part.numpy() for key, part in named} | names


def write_npz(dataset: GraphDataset, path: str | Path) -> None:
    """Write a graph in the same format; the same graph always gives the same bytes.

    The format has no place for the name, the note, or a metric other than the default,
    nor for nodes without a class.
    """
    if dataset.num_unlabelled:
        raise InputError(
            f"{path}: cannot be written: every node of an .npz graph must have a class "
            f"(got {dataset.num_unlabelled} without)"
        )
    arrays = graph_arrays(dataset)
    if dataset.directed:
        arrays[DIRECTED_KEY] = np.array(True)
    else:
        source, target = arrays["edges"].T
        arrays["edges"] = arrays["edges"][source < target]
    with writing(Path(path)), atomic_path(Path(path)) as temporary:
        write_arrays(temporary, arrays)


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write an .npz file of plain arrays; the caller makes it atomic."""
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))


# --- Graph folders --------------------------------------------------------------------


def read_graph_folder(
    path: Path,
) -> tuple[GraphDataset, tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """Read a folder that ``ecg-gnn data import`` wrote; anything odd is refused.

    Gives the graph, the names of its nodes and of its classes, and ``graph.json``.
    """
    manifest = read_manifest(path / MANIFEST, FORMAT, VERSION)
    source, note = path / ARRAYS, ""
    digest = _digest(source)
    arrays = read_folder_arrays(source, [*GRAPH_KEYS, *MASK_KEYS, NAMES_KEY])
    if (path / TARGETS).is_file():
        note = (
            "the label is a number, which `ecg-gnn fit` predicts; here its equal parts "
            "are classes"
        )
    dataset = dataset_from_arrays(
        source,
        arrays,
        name=path.resolve().name,  # never one that the file claims
        directed=entry(manifest, "directed", bool, path),
        unlabelled=True,
        sha256=digest,
        note=note,
    )
    ids = node_names(source, arrays[NAMES_KEY], dataset.num_nodes)
    classes = class_names(path, manifest, dataset.num_classes)
    return dataset, ids, classes, manifest


def node_names(source: Path | str, ids: AnyArray, num_nodes: int) -> tuple[str, ...]:
    """A name for every node, a text or a whole number; no two the same."""
    fits = ids.shape == (num_nodes,) and ids.dtype.kind in "Uiu"
    names = tuple(map(str, ids.tolist())) if fits else ()
    if len(set(names)) != num_nodes:
        raise InputError(
            f"{source}: {NAMES_KEY!r} must name each of {num_nodes} nodes once (got "
            f"{ids.dtype} {list(ids.shape)}, {len(set(names))} different)"
        )
    return names


def class_names(
    path: Path, manifest: Mapping[str, Any], num_classes: int
) -> tuple[str, ...]:
    """A name for every class, no two the same."""
    names = entry(manifest, "classes", list, path)
    if {*map(type, names)} - {str} or not len(names) == len({*names}) == num_classes:
        raise InputError(
            f"{path}: 'classes' must name each of {num_classes} classes once (got "
            f"{names!r:.60})"
        )
    return tuple(names)


def read_folder_arrays(
    path: Path, needed: list[str] | None = None
) -> dict[str, AnyArray]:
    """Arrays that must all be in an .npz file; whatever it has unless said."""

    def check_complete(names: set[str]) -> None:
        if missing := sorted({*(needed or [])} - names):
            raise InputError(f"{path}: arrays missing: {missing}")

    return read_archive(path, needed, check_complete)


def read_manifest(path: Path, kind: str, version: int) -> dict[str, Any]:
    """A JSON object that says what it is; another kind or version is refused."""
    manifest = read_json(str(path), read_text(path))
    if not isinstance(manifest, dict) or manifest.get("format") != kind:
        raise InputError(f"{path}: must say that it is an {kind!r} (it does not)")
    if manifest.get("version") != version or type(manifest["version"]) is not int:
        raise InputError(
            f"{path}: must be of version {version}, which this program reads (got "
            f"{manifest.get('version')!r}, written by another version of it)"
        )
    return manifest


def entry(manifest: Mapping[str, Any], name: str, kind: type, path: Path) -> Any:
    """One entry of a manifest, which must be of a type."""
    value = manifest.get(name)
    if not isinstance(value, kind):
        raise InputError(
            f"{path}: {name!r} must be of type {kind.__name__} (got {value!r:.60})"
        )
    return value
