"""The benchmark's .npz format, read as if a stranger had written the file."""

import io
import math
import zipfile
from pathlib import Path

import numpy as np

from ecg_gnn.checks import InputError
from ecg_gnn.data.dataset import GraphDataset, make_dataset
from ecg_gnn.data.validate import GRAPH_KEYS, MASK_KEYS, AnyArray, check_keys
from ecg_gnn.files import atomic_path, sha256_of_file

# Ours, beside the benchmark's keys, and written for directed graphs only: the
# benchmark has none, and its readers ignore what they do not know.
_DIRECTED_KEY = "directed"

# Deflate cannot shrink data more than this; a file that claims to is made to hurt.
_MAX_DEFLATE_RATIO = 1032


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
    digest = _checksum(path)
    if expected_sha256 is not None and digest != expected_sha256:
        raise InputError(
            f"{path}: sha256 must be {expected_sha256} (got {digest}): the file is "
            "damaged or another version; remove it to have it downloaded again"
        )
    arrays = _read_arrays(path)
    has_masks = MASK_KEYS[0] in arrays
    directed = arrays.get(_DIRECTED_KEY, np.False_)
    if directed.dtype.kind != "b" or directed.shape != ():
        raise InputError(
            f"{path}: {_DIRECTED_KEY!r} must be one boolean "
            f"(got {directed.dtype} {list(directed.shape)})"
        )
    train, val, test = MASK_KEYS
    return make_dataset(
        name=name,
        x=arrays["node_features"],
        y=arrays["node_labels"],
        edges=arrays["edges"],
        masks=(arrays[train], arrays[val], arrays[test]) if has_masks else None,
        metric=metric,
        directed=bool(directed),
        sha256=digest,
        note=note,
        source=str(path),
    )


def write_npz(dataset: GraphDataset, path: str | Path) -> None:
    """Write a graph in the same format; the same graph always gives the same bytes.

    The format has no place for the name, the note, or a metric other than the default.
    """
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
        arrays[_DIRECTED_KEY] = np.array(True)
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
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(path, archive)
            members = set(archive.namelist())
            check_keys(str(path), (name.removesuffix(".npy") for name in members))
            known = [*GRAPH_KEYS, *MASK_KEYS, _DIRECTED_KEY]
            return {
                key: _read_array(path, key, archive.read(f"{key}.npy"))
                for key in known
                if f"{key}.npy" in members
            }
    except InputError:
        raise
    # Damaged bytes raise a dozen types across zipfile, zlib, struct, tokenize and
    # NumPy, and which of them differs between versions; all mean the same to the user.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise InputError(
            f"{path}: must be a whole .npz file (got {type(error).__name__}: {reason})"
        ) from error


def _check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse an archive that claims to unpack to more than its bytes could hold."""
    claimed = sum(member.file_size for member in archive.infolist())
    possible = _MAX_DEFLATE_RATIO * path.stat().st_size
    if claimed > possible:
        raise InputError(
            f"{path}: must unpack to at most {possible} bytes, given its own size "
            f"(got a claim of {claimed})"
        )
    for member in archive.infolist():
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"{path}: {member.filename!r} must be stored or deflated (got "
                f"compression type {member.compress_type})"
            )


def _read_array(path: Path, key: str, content: bytes) -> AnyArray:
    """One .npy member, its header checked before memory is taken for it."""
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[version]
    shape, _, dtype = read_header(file)
    if dtype.hasobject:
        raise InputError(
            f"{path}: {key!r} must be an array of plain numbers (got pickled Python "
            "objects, which are never loaded)"
        )
    claimed = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or claimed != len(content) - file.tell():
        raise InputError(
            f"{path}: {key!r} must have the {claimed} bytes of its shape "
            f"{list(shape)} (got {len(content) - file.tell()})"
        )
    file.seek(0)
    array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
    return array
