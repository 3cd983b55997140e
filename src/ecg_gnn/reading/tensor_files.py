"""Tensors from .safetensors files."""

from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from ecg_gnn.reading.untrusted import check_cells, check_file, refusing
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import sha256_of_file


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a .safetensors file, which says itself how large they are."""
    check_file(path)
    with (
        refusing(str(path), "a whole .safetensors file"),
        safe_open(path, framework="pt") as file,
    ):
        names = list(file.keys())
        for name in names:
            shape = file.get_slice(name).get_shape()
            check_cells(f"{path}: {name!r}", shape)
        return {name: file.get_tensor(name) for name in names}


def read_written(path: Path, sha256: str | None) -> dict[str, Tensor]:
    """Tensors that this package wrote: as they were written, and finite numbers.

    Without a checksum, as in folders of the first version, any file is read.
    """
    check_file(path)
    if sha256 is not None and (actual := sha256_of_file(path)) != sha256:
        raise InputError(
            f"{path}: must be unchanged since it was written: sha256 "
            f"{sha256!r:.70} (got {actual})"
        )
    tensors = read_safetensors(path)
    for name, tensor in tensors.items():
        if not tensor.isfinite().all():
            raise InputError(f"{path}: {name!r} must be finite numbers")
    return tensors
