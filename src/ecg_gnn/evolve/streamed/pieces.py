"""All rows, piece by piece, to be compared with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ecg_gnn.evolve.canonical import Canonical, GridRule
from ecg_gnn.evolve.streamed.rows import Rows


class Piece(NamedTuple):
    """Neighbouring rows, and the number of the first."""

    start: int
    canonical: Canonical

    def slabs(self, size: int) -> Iterator["Piece"]:
        """The same in smaller parts, ascending."""
        for first in range(0, self.canonical.num_nodes, size):
            part = self.canonical.take(slice(first, first + size))
            yield Piece(self.start + first, part)

    def leave_out(self, nodes: Tensor, found: Tensor, value: float | bool) -> None:
        """Overwrite what was found [n, m] for nodes [n] with themselves."""
        own = nodes - self.start
        here = ((own >= 0) & (own < self.canonical.num_nodes)).nonzero().squeeze(1)
        found[here, own[here]] = value


def read_piece(
    rows: Rows, rule: GridRule, start: int, stop: int, device: torch.device
) -> Piece:
    """Rows from ``start`` up to ``stop``, perhaps none, on the grid."""
    if start == stop:
        nothing = torch.empty((0, rows.dim), dtype=torch.int32, device=device)
        return Piece(start, rule.from_grid(nothing))
    return Piece(start, rule.apply(rows.read(start, stop, device)))


class Pieces(Protocol):
    """All rows once per iteration, always in the same pieces."""

    def __iter__(self) -> Iterator[Piece]: ...

    def anyone(self, wanted: bool) -> bool:
        """Whether anybody who is given these pieces wants something."""


@dataclass(frozen=True)
class LocalPieces:
    """Pieces that this process reads itself."""

    rows: Rows
    rule: GridRule
    size: int
    device: torch.device

    def __iter__(self) -> Iterator[Piece]:
        """Read them one by one."""
        for start in range(0, self.rows.num_nodes, self.size):
            stop = min(start + self.size, self.rows.num_nodes)
            yield read_piece(self.rows, self.rule, start, stop, self.device)

    def anyone(self, wanted: bool) -> bool:
        """There is nobody else."""
        return wanted


@dataclass(frozen=True)
class HeldPieces:
    """Rows that are on the grid already, as one piece."""

    canonical: Canonical

    def __iter__(self) -> Iterator[Piece]:
        """Just the one."""
        yield Piece(0, self.canonical)

    def anyone(self, wanted: bool) -> bool:
        """There is nobody else."""
        return wanted
