"""Tensors from .safetensors files and from files that ``torch.save`` wrote."""

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor

from ecg_gnn.reading.npy_files import AnyArray, check_archive
from ecg_gnn.reading.untrusted import (
    BYTES_PER_CELL,
    check_cells,
    check_file,
    check_pickle,
    refusing,
)
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file

# A tensor by its bytes, its shape, and nothing that would make one of another size.
_OF_TENSORS = (
    r"torch\.[A-Z][A-Za-z0-9]+Storage|torch\._utils\._rebuild_(tensor_v2|sparse_tensor|"
    r"parameter)|torch\.(Size|device)|torch\.serialization\._get_layout|"
    r"collections\.OrderedDict"
)
_NUMPY_FLOATS = (torch.float16, torch.float32, torch.float64)


def read_safetensors(path: Path, *, most: int | None = None) -> dict[str, Tensor]:
    """All tensors of a .safetensors file, which says itself how large they are."""
    check_file(path)
    with (
        refusing(str(path), "a whole .safetensors file"),
        safe_open(path, framework="pt") as file,
    ):
        names = list(file.keys())
        for name in names:
            shape = file.get_slice(name).get_shape()
            check_cells(f"{path}: {name!r}", shape, most)
        return {name: file.get_tensor(name) for name in names}


def read_written(path: Path, sha256: str | None) -> dict[str, Tensor]:
    """Tensors that this package wrote: as they were written, and finite numbers.

    Without a checksum, as in folders of the first version, any file is read.
    """
    check_file(path)
    if sha256 is not None and (actual := sha256_of_file(path)) != sha256:
        raise InputError(
            f"{path}: must be as it was written, with the sha256 {sha256!r:.70} (got "
            f"{actual})"
        )
    tensors = read_safetensors(path)
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{path}: {name!r} must be finite numbers")
    return tensors


def read_torch(
    path: Path, wanted: str, allowed: Iterable[type], *, most: int | None = None
) -> Any:
    """What ``torch.save`` wrote: plain values, tensors and ``allowed`` classes only.

    ``wanted`` is what it must be, for the message; for ``most``, here of all together,
    see :func:`ecg_gnn.reading.check_cells`.
    """
    check_file(path)
    classes = list(allowed)
    with refusing(str(path), wanted):
        with zipfile.ZipFile(path) as archive:
            _check_saved(path, archive, classes, most)
        with (
            torch.serialization.safe_globals([*classes]),
            torch.sparse.check_sparse_tensor_invariants(),
        ):
            # weights_only: even what has passed the check cannot run code.
            return torch.load(path, map_location="cpu", weights_only=True)


def _check_saved(
    path: Path, archive: zipfile.ZipFile, classes: list[type], most: int | None
) -> None:
    """Refuse a file by its sizes and by what it names, before torch opens it."""
    check_archive(path, archive)
    claimed = sum(member.file_size for member in archive.infolist())
    check_cells(str(path), [claimed // BYTES_PER_CELL], most)
    named = [re.escape(f"{each.__module__}.{each.__qualname__}") for each in classes]
    harmless = re.compile("|".join([_OF_TENSORS, *named]))
    if (broken := archive.testzip()) is not None:  # torch reads it all the same
        raise InputError(
            f"{path}: {broken!r} must be as it was saved (got other bytes)"
        )
    for name in archive.namelist():
        if name.endswith(".pkl"):
            check_pickle(str(path), archive.read(name), harmless)


def dense_array(source: str, tensor: Tensor, *, most: int | None = None) -> AnyArray:
    """A tensor as NumPy has it; one that only looks small is refused.

    A sparse tensor, or one that repeats a single number, has any shape in a few bytes.
    """
    check_cells(source, tensor.shape, most, itemsize=tensor.element_size())
    with refusing(source, "a tensor of plain numbers"):
        dense = tensor.detach().cpu().to_dense()
        if dense.is_floating_point() and dense.dtype not in _NUMPY_FLOATS:
            dense = dense.float()
        return np.asarray(dense.numpy())
