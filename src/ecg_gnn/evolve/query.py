"""The input and output of a search: rows, a query, its result, and finished blocks."""

import json
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import write_array, write_json
from ecg_gnn.system.seeds import derive_seed

Embeddings = Tensor | NDArray[Any]
Progress = Callable[[int, int], None]
"""Called with (nodes finished, all nodes)."""
_CHECKED_ELEMENTS = 1 << 25


@dataclass(frozen=True)
class Rows:
    """Embeddings [N, D], in memory or mapped from a file."""

    z: Tensor
    file: Path | None = None  # that they are mapped from, if known
    end: int = 0  # bytes that the whole file has

    @classmethod
    def of(cls, z: Embeddings) -> "Rows":
        """Wrap a tensor, an array, or an array mapped from a file."""
        mapped = z if isinstance(z, np.memmap) else None
        while mapped is not None and isinstance(mapped.base, np.memmap):
            mapped = mapped.base  # the whole map that an array is a part of
        tensor = _as_tensor(z) if isinstance(z, np.ndarray) else z
        if not isinstance(tensor, Tensor):
            raise InputError(f"'z' must be a floating tensor [N, D] (got {type(z)!r})")
        if tensor.dim() != 2 or not tensor.is_floating_point():
            got = f"{tensor.dtype} {list(tensor.shape)}"
            raise InputError(f"'z' must be a floating tensor [N, D] (got {got})")
        if tensor.numel() == 0:
            raise InputError(f"'z' must not be empty (got shape {list(tensor.shape)})")
        if mapped is None or mapped.filename is None:
            return cls(tensor)
        return cls(tensor, Path(mapped.filename), int(mapped.offset) + mapped.nbytes)

    @property
    def num_nodes(self) -> int:
        return self.z.size(0)

    @property
    def dim(self) -> int:
        return self.z.size(1)

    def read(self, start: int, stop: int, device: torch.device) -> Tensor:
        """Some of the rows, on a device."""
        self.check_file()
        return self.z[start:stop].to(device)

    def check_file(self) -> None:
        """Refuse a file that was cut off: reading past its end kills the process."""
        if self.file is None:
            return
        size = self.file.stat().st_size if self.file.exists() else 0
        if size < self.end:
            raise InputError(
                f"{self.file} must have the {self.end} bytes of its rows "
                f"(got {size}: it was cut off while it was read)"
            )

    def check_finite(self) -> None:
        """Refuse rows with NaN or infinity, naming the first."""
        self.check_file()
        size = max(1, _CHECKED_ELEMENTS // self.dim)
        for start in range(0, self.num_nodes, size):
            bad = (~self.z[start : start + size].isfinite()).any(1)
            if bool(bad.any()):
                row = start + int(bad.nonzero()[0])
                raise InputError(
                    f"'z' must be finite (got NaN or infinity in row {row})"
                )


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


@dataclass(frozen=True, kw_only=True)
class Query:
    """A search for the ``k`` most similar other nodes of every node.

    What the others are, :func:`ecg_gnn.evolve.knn_search` explains.
    """

    k: int
    metric: str
    seed: int
    device: torch.device
    memory: int | None = None
    block_size: int | None = None
    progress: Progress | None = None
    folder: Path | None = None

    @property
    def key(self) -> int:
        """Seeds the random choice among ties."""
        return derive_seed(self.seed, "knn-ties")

    def counter(self, total: int) -> Callable[[int], None]:
        """A function that adds up finished nodes and reports them to ``progress``."""
        done = 0

        def add(count: int) -> None:
            nonlocal done
            done += count
            if self.progress is not None and count:
                self.progress(done, total)

        return add

    def fingerprint(self, rows: Rows) -> dict[str, Any]:
        """What searches must have in common to share finished blocks."""
        search: dict[str, Any] = {"rows": list(rows.z.shape), "k": self.k}
        search |= {"similarity": self.metric, "seed": self.seed}
        if rows.file is not None:
            with suppress(OSError):
                status = rows.file.stat()
                search["file"] = [status.st_size, status.st_mtime_ns]
        return search


class SearchResult(NamedTuple):
    """Neighbours, and how they were found: see ``KnnGraph``."""

    neighbours: Tensor  # ascending, [N, k]
    method: str = "exact"
    recall: float | None = None


@dataclass(frozen=True)
class FinishedBlocks:
    """Neighbours of the first rows in files, from which a search resumes."""

    folder: Path

    def load(self, neighbours: Tensor, search: dict[str, Any]) -> int:
        """Fill in the rows [N, k] that are finished; how many of the first are.

        Raises:
            InputError: The folder belongs to another ``search``, or is damaged.
        """
        path = self.folder / "search.json"
        if not path.is_file():
            write_json(path, search)
        done = 0
        try:
            existing = json.loads(path.read_text(encoding="utf-8"))
            while existing == search and (
                blocks := list(self.folder.glob(f"{done}-*.npy"))
            ):
                path = blocks[0]
                block = np.load(path, allow_pickle=False)
                stop = int(path.stem.partition("-")[2])
                fits = block.shape == neighbours[done:stop].shape and stop > done
                if block.dtype != np.int64 or not fits:
                    raise ValueError(f"it holds {block.dtype} {list(block.shape)}")
                neighbours[done:stop] = torch.from_numpy(block)
                done = stop
        except (OSError, EOFError, ValueError) as error:
            raise InputError(f"{path} is damaged ({error}): remove it") from None
        if existing != search:
            raise InputError(
                f"{str(self.folder)!r} holds another search ({existing}, this one is "
                f"{search}): remove it, or choose another 'out'"
            )
        return done

    def save(self, start: int, block: Tensor) -> None:
        """Keep the neighbours [n, k] of the rows from ``start`` on."""
        path = self.folder / f"{start}-{start + len(block)}.npy"
        write_array(path, block.numpy())

    def remove(self) -> None:
        """Delete the files, and the folder if nothing else is in it."""
        for path in [*self.folder.glob("*-*.npy"), self.folder / "search.json"]:
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
