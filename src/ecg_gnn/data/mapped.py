"""Features that stay in their file: only rows that are needed are read.

Beside ``graph.npz`` the file is ``graph.node_features.npy``, in a graph's folder it is
``node_features.npy``: float32 ``[N, F]``, as ``numpy.save`` writes it.
"""

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.data.validate import check_features
from ecg_gnn.reading import MappedFile, map_array_file, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file

KEY = "node_features"
_CELLS_AT_ONCE = 2**24


def map_features(source: str, x: np.memmap[Any, Any]) -> tuple[Tensor, MappedFile]:
    """Mapped features as a tensor, after one look at them from beginning to end.

    Args:
        source: Whom the message names.
        x: What is mapped, float32 ``[N, F]``.
    """
    file = MappedFile.of(f"{source}: {KEY!r}", x)
    features = file.array()
    check_features(source, features[:1])
    height = max(1, _CELLS_AT_ONCE // features.shape[1])
    for first in range(0, len(features), height):
        try:
            check_features(source, features[first : first + height])
        except InputError as error:
            where = f", counted from row {first}" if first else ""
            raise InputError(f"{error}{where}") from None
    return torch.from_numpy(features), file


def open_beside(archive: Path, beside: Path) -> np.memmap[Any, Any] | None:
    """Features beside an archive with the rest of a graph; None if there are none.

    Raises:
        InputError: If the file is cut short, or if the archive has features, too.
    """
    if not beside.is_file():
        return None
    with refusing(str(archive), "a whole .npz file"), zipfile.ZipFile(archive) as found:
        in_both = f"{KEY}.npy" in found.namelist()
    if in_both:
        raise InputError(
            f"{archive}: {KEY!r} must be in it or in {beside.name} (got both)"
        )
    return map_array_file(beside)


def beside_archive(archive: Path) -> Path:
    """Where the features of ``graph.npz`` lie, if they are not in it."""
    return archive.with_name(f"{archive.stem}.{KEY}.npy")


def joint_sha256(digest: str, beside: Path) -> str:
    """The checksum of a graph in two files, the first of which has this one."""
    both = f"{digest} {sha256_of_file(beside)}"
    return hashlib.sha256(both.encode()).hexdigest()
