"""Graphs in the benchmark's .npz format; files are treated as untrusted.

Large features may lie in a file of their own and stay there: only rows that are needed
are read. Beside ``graph.npz`` that file is ``graph.node_features.npy``, in a graph
folder it is ``node_features.npy``: float32 ``[N, F]``, as ``numpy.save`` writes it.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.data.graph_checks import (
    FEATURES_KEY,
    GRAPH_KEYS,
    MASK_KEYS,
    AnyArray,
    check_keys,
)
from ecg_gnn.reading import map_array_file, read_archive, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path, sha256_of_file

# Ours, beside the benchmark's keys, and written for directed graphs only: the
# benchmark has none, and its readers ignore keys that they do not know.
DIRECTED_KEY = "directed"


def read_npz(
    path: str | Path,
    name: str,
    *,
    expected_sha256: str | None = None,
    metric: str | None = None,
    note: str = "",
) -> GraphDataset:
    """Read one graph in the format of Platonov et al. (2023).

    The arrays are ``node_features`` [N, F], ``node_labels`` [N], ``edges`` [E, 2] (an
    undirected edge once) and ``train_masks``, ``val_masks``, ``test_masks`` [S, N].
    Without masks the graph gets ten stratified splits from seed 0.

    Args:
        path: The file.
        name: What records and tables call the graph.
        expected_sha256: Refuse the file if its checksum is another one.
        metric: "accuracy" or "roc_auc"; by default ROC AUC for two classes.
        note: See :class:`GraphDataset`.
    """
    path = Path(path)
    try:
        digest = sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    if expected_sha256 is not None and digest != expected_sha256:
        raise InputError(
            f"{path}: sha256 must be {expected_sha256} (got {digest}): the file is "
            "damaged or another version; remove it to have it downloaded again"
        )
    features_file = path.with_name(f"{path.stem}.{FEATURES_KEY}.npy")
    elsewhere = {FEATURES_KEY} if features_file.is_file() else set()

    def check(names: set[str]) -> None:
        check_keys(str(path), names | elsewhere)

    arrays = read_archive(path, [*GRAPH_KEYS, *MASK_KEYS, DIRECTED_KEY], check)
    return dataset_from_arrays(
        path,
        add_features_file(path, features_file, arrays),
        name=name,
        metric=metric,
        directed=is_directed(path, arrays),
        sha256=joint_sha256(digest, features_file),
        note=note,
    )


def dataset_from_arrays(
    path: Path, arrays: Mapping[str, AnyArray], **options: Any
) -> GraphDataset:
    """The graph whose arrays an .npz file has, under the names of the format."""
    masks = None
    if MASK_KEYS[0] in arrays:
        train, val, test = (arrays[key] for key in MASK_KEYS)
        masks = (train, val, test)
    x, y, edges = (arrays[key] for key in GRAPH_KEYS)
    return make_dataset(x=x, y=y, edges=edges, masks=masks, source=str(path), **options)


def add_features_file(
    archive: Path, features_file: Path, arrays: dict[str, AnyArray]
) -> dict[str, AnyArray]:
    """An archive's arrays with the features beside it, if there are any.

    Raises:
        InputError: If the file is cut short, or if the archive has features, too.
    """
    if not features_file.is_file():
        return arrays
    with refusing(str(archive), "a whole .npz file"), zipfile.ZipFile(archive) as file:
        in_both = f"{FEATURES_KEY}.npy" in file.namelist()
    if in_both:
        raise InputError(
            f"{archive}: {FEATURES_KEY!r} must be in it or in {features_file.name} "
            "(got both)"
        )
    return arrays | {FEATURES_KEY: map_array_file(features_file)}


def joint_sha256(digest: str, features_file: Path) -> str:
    """The checksum of a graph, given that of its archive; both files' if it has two."""
    if not features_file.is_file():
        return digest
    both = f"{digest} {sha256_of_file(features_file)}"
    return hashlib.sha256(both.encode()).hexdigest()


def is_directed(path: Path, arrays: Mapping[str, AnyArray]) -> bool:
    """Whether a file says that (u, v) differs from (v, u)."""
    directed = arrays.get(DIRECTED_KEY, np.False_)
    if directed.dtype.kind != "b" or directed.shape != ():
        raise InputError(
            f"{path}: {DIRECTED_KEY!r} must be one boolean "
            f"(got {directed.dtype} {list(directed.shape)})"
        )
    return bool(directed)


def npz_arrays(dataset: GraphDataset, edge_index: Tensor) -> dict[str, AnyArray]:
    """A graph's arrays under the names of the format, with the given edges."""
    return {
        FEATURES_KEY: dataset.x.numpy(),
        "node_labels": dataset.y.numpy(),
        "edges": edge_index.t().contiguous().numpy(),
        "train_masks": dataset.train_masks.numpy(),
        "val_masks": dataset.val_masks.numpy(),
        "test_masks": dataset.test_masks.numpy(),
    }


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
    if dataset.directed:
        arrays = npz_arrays(dataset, dataset.edge_index)
        arrays[DIRECTED_KEY] = np.array(True)
    else:
        source, target = dataset.edge_index
        arrays = npz_arrays(dataset, dataset.edge_index[:, source < target])
    try:
        with atomic_path(Path(path)) as temporary:
            write_arrays(temporary, arrays)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error})") from error


def write_arrays(path: Path, arrays: Mapping[str, AnyArray]) -> None:
    """Write an .npz file of plain arrays; the caller makes it atomic."""
    with path.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **dict(arrays))
