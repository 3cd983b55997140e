"""What a search is given and what it gives: rows, a query, and finished rows.

Neither the embeddings nor the neighbours found so far need be in memory.
"""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
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
Range = tuple[int, int]
"""Rows from the first number on, up to the second."""
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
        if not isinstance(tensor, Tensor):
            raise InputError(f"'z' must be a floating tensor [N, D] (got {type(z)!r})")
        if tensor.dim() != 2 or not tensor.is_floating_point():
            got = f"{tensor.dtype} {list(tensor.shape)}"
            raise InputError(f"'z' must be a floating tensor [N, D] (got {got})")
        if tensor.numel() == 0:
            raise InputError(f"'z' must not be empty (got shape {list(tensor.shape)})")
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


def _origin(z: Embeddings) -> np.memmap[Any, Any] | None:
    """The whole map that an array is a part of."""
    if not isinstance(z, np.memmap):
        return None
    while isinstance(z.base, np.memmap):
        z = z.base
    return z


@dataclass(frozen=True, kw_only=True)
class Query:
    """A search for the ``k`` most similar other nodes of every node.

    Attributes:
        k: Neighbours per node.
        metric: What "similar" means.
        seed: Of ties, and of an approximate search.
        device: Where it computes.
        memory: Bytes that it may take; None: half of what is free.
        block_size: Rows of scores held at a time; None fits the memory.
        progress: Told how far it is.
        folder: Where finished rows are kept while it goes over them in blocks; None: in
            memory.
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
        """Of the random choice among ties."""
        return derive_seed(self.seed, "knn-ties")

    def counter(self, total: int) -> Callable[[int], None]:
        """Turns "so many more" into ``progress``'s "so many of all"."""
        done = 0

        def add(count: int) -> None:
            nonlocal done
            done += count
            if self.progress is not None and count:
                self.progress(done, total)

        return add

    def finished(self, rows: Rows) -> "FinishedRows":
        """Where finished rows go; those of an equal, earlier search may be there."""
        search: dict[str, Any] = {"rows": list(rows.z.shape), "k": self.k}
        search |= {"similarity": self.metric, "seed": self.seed}
        if rows.file is not None:
            with suppress(OSError):
                status = rows.file.stat()
                search["file"] = [status.st_size, status.st_mtime_ns]
        return FinishedRows(rows.num_nodes, self.k, self.folder, search)


class Found(NamedTuple):
    """Neighbours, and how they were found.

    Attributes:
        neighbours: Ascending. ``[N, k]``
        method: The name of the backend.
        recall: The share of true neighbours, measured on some rows; None: exact.
    """

    neighbours: Tensor
    method: str = "exact"
    recall: float | None = None


class FinishedRows:
    """Rows whose neighbours are found: nothing of that is done twice, or lost.

    Args:
        num_nodes: How many rows there are.
        k: Neighbours per row.
        folder: Where finished rows are files, so that a search that was stopped goes
            on there; None: they are in memory.
        search: What tells searches apart whose rows must not be mixed.
    """

    def __init__(
        self,
        num_nodes: int,
        k: int,
        folder: Path | None = None,
        search: Mapping[str, Any] | None = None,
    ) -> None:
        self.num_nodes, self.k = num_nodes, k
        self.folder, self.search = folder, dict(search or {})
        self._done: list[Range] = []
        shape = (num_nodes if folder is None else 0, k)
        self.neighbours = torch.empty(shape, dtype=torch.long)

    def missing(self) -> list[Range]:
        """The rows that are not there yet, ascending; the folder is this search's.

        Raises:
            InputError: If it holds another one.
        """
        if self.folder is None:
            return gaps(self._done, self.num_nodes)
        path = self.folder / "search.json"
        if not path.is_file():
            write_json(path, self.search)
        try:
            existing = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path} is damaged ({error}): remove it") from None
        if existing != self.search:
            raise InputError(
                f"{str(self.folder)!r} holds another search ({existing}, this one is "
                f"{self.search}): remove it, or choose another 'out'"
            )
        return gaps(self._files(), self.num_nodes)

    def keep(self, start: int, found: Tensor) -> None:
        """Take the neighbours [n, k] of the rows from ``start`` on."""
        stop = start + len(found)
        if self.folder is None:
            self.neighbours[start:stop] = found
            self._done.append((start, stop))
        else:
            write_array(self.folder / f"{start}-{stop}.npy", found.numpy())

    def collect(self) -> Tensor:
        """All neighbours, once nothing is missing: [N, k]."""
        if self.folder is None:
            return self.neighbours
        whole = torch.empty((self.num_nodes, self.k), dtype=torch.long)
        for (start, stop), path in self._files().items():
            try:
                loaded = np.load(path, allow_pickle=False)
            except (OSError, EOFError, ValueError) as error:
                raise InputError(f"{path} is damaged ({error}): remove it") from None
            if loaded.dtype != np.int64 or loaded.shape != (stop - start, self.k):
                got = f"{loaded.dtype} {list(loaded.shape)}"
                raise InputError(f"{path} is damaged (it holds {got}): remove it")
            whole[start:stop] = torch.from_numpy(loaded)
        return whole

    def remove(self) -> None:
        """Throw away the files, and the folder if nothing else is in it."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in [*self._files().values(), self.folder / "search.json"]:
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _files(self) -> dict[Range, Path]:
        if self.folder is None:
            return {}
        names = {path: path.stem.partition("-") for path in self.folder.glob("*-*.npy")}
        return {
            (int(start), int(stop)): path
            for path, (start, _, stop) in names.items()
            if start.isdecimal() and stop.isdecimal()
        }


def count_rows(ranges: Iterable[Range]) -> int:
    """How many rows there are in ranges that have none in common."""
    return sum(stop - start for start, stop in ranges)


def gaps(done: Iterable[Range], end: int) -> list[Range]:
    """What ranges leave open below ``end``."""
    found, reached = [], 0
    for start, stop in sorted(done):
        if start > reached:
            found.append((reached, start))
        reached = max(reached, stop)
    if reached < end:
        found.append((reached, end))
    return found
