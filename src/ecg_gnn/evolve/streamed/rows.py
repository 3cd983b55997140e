"""Embeddings that need not be in memory."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.system.checks import InputError

Embeddings = Tensor | NDArray[Any]
_CHECKED_ELEMENTS = 1 << 25


@dataclass(frozen=True)
class Rows:
    """Embeddings [N, D], in memory or mapped from a file."""

    z: Tensor
    file: Path | None = None
    """What they are mapped from, if that is known"""
    end: int = 0
    """Bytes that the file has as long as it is whole"""

    @classmethod
    def of(cls, z: Embeddings) -> "Rows":
        """Wrap a tensor, an array, or an array mapped from a file."""
        mapped = _origin(z)
        tensor = _as_tensor(z) if isinstance(z, np.ndarray) else z
        if (
            not isinstance(tensor, Tensor)
            or tensor.dim() != 2
            or not tensor.is_floating_point()
        ):
            got = repr(type(z))
            if isinstance(tensor, Tensor):
                got = f"{tensor.dtype} {list(tensor.shape)}"
            raise InputError(f"'z' must be a floating tensor [N, D] (got {got})")
        if tensor.numel() == 0:
            got = f"shape {list(tensor.shape)}"
            raise InputError(f"'z' must not be empty (got {got})")
        if mapped is None or mapped.filename is None:
            return cls(tensor)
        end = int(mapped.offset) + mapped.nbytes
        return cls(tensor, Path(mapped.filename), end)

    @property
    def num_nodes(self) -> int:
        """How many rows there are."""
        return self.z.size(0)

    @property
    def dim(self) -> int:
        """How long they are."""
        return self.z.size(1)

    def read(self, start: int, stop: int, device: torch.device) -> Tensor:
        """Some of the rows, on a device."""
        self.check_file()
        return self.z[start:stop].to(device)

    def check_file(self) -> None:
        """Refuse a file that was cut off: reading past its end would kill us."""
        if self.file is None:
            return
        size = self.file.stat().st_size if self.file.exists() else 0
        if size < self.end:
            raise InputError(
                f"{self.file} must have the {self.end} bytes of its rows "
                f"(got {size}: it was cut off while it was read)"
            )

    def first_bad(self, start: int, stop: int) -> int:
        """The first row with NaN or infinity among some; the number of rows if none."""
        self.check_file()
        size = max(1, _CHECKED_ELEMENTS // self.dim)
        for first in range(start, stop, size):
            some = self.z[first : min(first + size, stop)]
            bad = (~some.isfinite()).any(1)
            if bool(bad.any()):
                return first + int(bad.nonzero()[0])
        return self.num_nodes

    def refuse(self, bad: int) -> None:
        """Say which row is not finite; nothing for the number of rows."""
        if bad < self.num_nodes:
            raise InputError(f"'z' must be finite (got NaN or infinity in row {bad})")


def _as_tensor(array: NDArray[Any]) -> Tensor:
    """The array's own memory as a tensor; nobody writes to it."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            return torch.from_numpy(array)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"'z' must be a floating array [N, D] (got {array.dtype}: {error})"
        ) from None


def _origin(z: Embeddings) -> np.memmap[Any, Any] | None:
    """The whole map that an array is a part of."""
    if not isinstance(z, np.memmap):
        return None
    while isinstance(z.base, np.memmap):
        z = z.base
    return z
