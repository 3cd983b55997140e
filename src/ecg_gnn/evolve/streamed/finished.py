"""Rows whose neighbours are found: nothing of that is done twice, or lost."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import write_array, write_json

Range = tuple[int, int]
"""Rows from the first number on, up to the second."""


class Finished(Protocol):
    """Where finished rows go."""

    def missing(self) -> list[Range]:
        """The rows that are not there yet, ascending."""

    def keep(self, start: int, found: Tensor) -> None:
        """Take the neighbours [n, k] of the rows from ``start`` on."""

    def collect(self) -> Tensor:
        """All neighbours, once nothing is missing: [N, k]."""


class InMemory:
    """Finished rows as one tensor."""

    def __init__(self, num_nodes: int, k: int) -> None:
        self.neighbours = torch.empty((num_nodes, k), dtype=torch.long)
        self._done: list[Range] = []

    def missing(self) -> list[Range]:
        """The rows that are not there yet, ascending."""
        return gaps(self._done, len(self.neighbours))

    def keep(self, start: int, found: Tensor) -> None:
        """Take the neighbours [n, k] of the rows from ``start`` on."""
        self.neighbours[start : start + len(found)] = found
        self._done.append((start, start + len(found)))

    def collect(self) -> Tensor:
        """All neighbours, once nothing is missing: [N, k]."""
        return self.neighbours


class OnDisk:
    """Finished rows as files of a folder: a search that was stopped goes on there."""

    def __init__(
        self, folder: Path, num_nodes: int, k: int, search: Mapping[str, Any]
    ) -> None:
        self.folder, self.num_nodes, self.k = folder, num_nodes, k
        self.search = dict(search)

    def _claim(self) -> None:
        """Make the folder this search's, or refuse if it holds another one."""
        path = self.folder / "search.json"
        if not path.is_file():
            write_json(path, self.search)
            return
        try:
            existing = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"{path} is damaged ({error}): remove it") from None
        if existing != self.search:
            raise InputError(
                f"{str(self.folder)!r} holds another search ({existing}, this one is "
                f"{self.search}): remove it, or choose another 'out'"
            )

    def missing(self) -> list[Range]:
        """The rows that are not there yet, ascending; the folder is this search's.

        Raises:
            InputError: If it holds another one.
        """
        self._claim()
        return gaps([found for found, _ in self._parts()], self.num_nodes)

    def keep(self, start: int, found: Tensor) -> None:
        """Take the neighbours [n, k] of the rows from ``start`` on."""
        if len(found):
            name = f"{start}-{start + len(found)}.npy"
            write_array(self.folder / name, found.numpy())

    def collect(self) -> Tensor:
        """All neighbours, once nothing is missing: [N, k]."""
        whole = torch.empty((self.num_nodes, self.k), dtype=torch.long)
        for (start, stop), path in self._parts():
            try:
                part = np.load(path, allow_pickle=False)
            except (OSError, EOFError, ValueError) as error:
                raise InputError(f"{path} is damaged ({error}): remove it") from None
            if part.dtype != np.int64 or part.shape != (stop - start, self.k):
                got = f"{part.dtype} {list(part.shape)}"
                raise InputError(f"{path} is damaged (it holds {got}): remove it")
            whole[start:stop] = torch.from_numpy(part)
        return whole

    def remove(self) -> None:
        """Throw away the files, and the folder if nothing else is in it."""
        for path in [path for _, path in self._parts()]:
            path.unlink(missing_ok=True)
        (self.folder / "search.json").unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _parts(self) -> list[tuple[Range, Path]]:
        parts = []
        for path in self.folder.glob("[0-9]*-*.npy"):
            start, _, stop = path.stem.partition("-")
            if start.isdecimal() and stop.isdecimal():
                parts.append(((int(start), int(stop)), path))
        return sorted(parts)


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
