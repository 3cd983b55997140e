"""The benchmark's .npz format, read as if a stranger had written the file."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.data.mapped import KEY, beside_archive, joint_sha256, open_beside
from ecg_gnn.data.validate import GRAPH_KEYS, MASK_KEYS, AnyArray, check_keys
from ecg_gnn.reading import read_archive
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path, sha256_of_file

# Ours, beside the benchmark's keys, and written for directed graphs only: the
# benchmark has none, and its readers ignore what they do not know.
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
    Without masks the graph gets ten stratified splits from seed 0. Features may lie in
    a file of their own, see ``ecg_gnn.data.mapped``.

    Args:
        path: The file.
        name: What records and tables call the graph.
        expected_sha256: Refuse the file if its checksum is another one.
        metric: "accuracy" or "roc_auc"; by default ROC AUC for two classes.
        note: See :class:`GraphDataset`.
    """
    path = Path(path)
    digest = _checksum(path)
    if expected_sha256 is not None and digest != expected_sha256:
        raise InputError(
            f"{path}: sha256 must be {expected_sha256} (got {digest}): the file is "
            "damaged or another version; remove it to have it downloaded again"
        )
    arrays = _read_arrays(path)
    beside = beside_archive(path)
    if (features := open_beside(path, beside)) is not None:
        arrays[KEY], digest = features, joint_sha256(digest, beside)
    has_masks = MASK_KEYS[0] in arrays
    train, val, test = MASK_KEYS
    return make_dataset(
        name=name,
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=(arrays[train], arrays[val], arrays[test]) if has_masks else None,
        metric=metric,
        directed=is_directed(path, arrays),
        sha256=digest,
        note=note,
        source=str(path),
    )


def is_directed(path: Path, arrays: Mapping[str, AnyArray]) -> bool:
    """Whether a file says that (u, v) differs from (v, u)."""
    directed = arrays.get(DIRECTED_KEY, np.False_)
    if directed.dtype.kind != "b" or directed.shape != ():
        raise InputError(
            f"{path}: {DIRECTED_KEY!r} must be one boolean "
            f"(got {directed.dtype} {list(directed.shape)})"
        )
    return bool(directed)


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
    source, target = dataset.edge_index
    once = source < target
    if dataset.directed:
        once = once.new_ones(once.shape)
    arrays = {
        "node_features": dataset.x.numpy(),
        "node_labels": dataset.y.numpy(),
        "edges": dataset.edge_index[:, once].t().contiguous().numpy(),
        "train_masks": dataset.train_masks.numpy(),
        "val_masks": dataset.val_masks.numpy(),
        "test_masks": dataset.test_masks.numpy(),
    }
    if dataset.directed:
        arrays[DIRECTED_KEY] = np.array(True)
    try:
        with atomic_path(Path(path)) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error})") from error


def _checksum(path: Path) -> str:
    """The file's checksum, or the reason it cannot be opened."""
    try:
        return sha256_of_file(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _read_arrays(path: Path) -> dict[str, AnyArray]:
    """The arrays of a file that we know; anything else in it is left alone."""
    beside = {KEY} if beside_archive(path).is_file() else set()

    def check(names: set[str]) -> None:
        check_keys(str(path), names | beside)

    return read_archive(path, [*GRAPH_KEYS, *MASK_KEYS, DIRECTED_KEY], check)
