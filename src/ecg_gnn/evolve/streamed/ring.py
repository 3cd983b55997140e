"""Pieces that go round a ring of processes, each of which owns some of the rows."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from ecg_gnn.evolve.canonical import GridRule
from ecg_gnn.evolve.streamed.finished import Range
from ecg_gnn.evolve.streamed.pieces import Piece, read_piece
from ecg_gnn.evolve.streamed.rows import Rows

_Result = TypeVar("_Result")


class LostProcessError(ConnectionError):
    """Another process of a search is gone, or was silent for too long."""

    def __init__(self, reason: BaseException, patience: timedelta) -> None:
        first = (str(reason).splitlines() or [""])[0][:200]
        super().__init__(
            "another process of this kNN search is gone, or was silent for "
            f"{patience.total_seconds():.0f} s ({first}): start it again "
            "(`ecg-gnn knn` goes on after its finished rows)"
        )


@dataclass(frozen=True)
class Ring:
    """The processes that search together."""

    rank: int
    size: int
    patience: timedelta
    """How long to wait for another one"""
    device: torch.device
    size_here: int = 1
    """How many of them share this machine's memory"""

    @classmethod
    def joined(cls, device: torch.device, patience: timedelta) -> "Ring":
        """All processes of the default group, which must be there."""
        here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        return cls(dist.get_rank(), dist.get_world_size(), patience, device, here)

    def share(self, num_nodes: int, rank: int) -> Range:
        """The rows that a process owns: equally many up to one, or none."""
        return num_nodes * rank // self.size, num_nodes * (rank + 1) // self.size

    def least(self, value: int) -> int:
        """The smallest of everybody's numbers."""
        return self._reduce(value, dist.ReduceOp.MIN)

    def most(self, value: int) -> int:
        """The largest of everybody's numbers."""
        return self._reduce(value, dist.ReduceOp.MAX)

    def tell(self, tensor: Tensor, teller: int = 0) -> Tensor:
        """One process's tensor, in place of everybody's of the same shape."""
        tensor = tensor.to(self.device)
        self._wait(lambda: [_work(dist.broadcast(tensor, teller, async_op=True))])
        return tensor

    def start_exchange(self, own: Tensor, other: Tensor) -> Callable[[], None]:
        """Send rows to the next process while the last one's come in.

        Returns:
            A function that waits until ``other`` is filled and ``own`` is free.
        """
        following, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        wanted = [
            dist.P2POp(how, rows, whom)
            for how, rows, whom in (
                (dist.isend, own, following),
                (dist.irecv, other, before),
            )
            if rows.numel()
        ]
        under_way = self._safely(
            lambda: dist.batch_isend_irecv(wanted) if wanted else []
        )
        return lambda: self._wait(lambda: under_way)

    def _reduce(self, value: int, how: dist.ReduceOp.RedOpType) -> int:
        number = torch.tensor([value], device=self.device)
        self._wait(lambda: [_work(dist.all_reduce(number, how, async_op=True))])
        return int(number)

    def _wait(self, start: Callable[[], Sequence[dist.Work]]) -> None:
        def wait() -> None:
            for work in start():
                work.wait(self.patience)

        self._safely(wait)

    def _safely(self, what: Callable[[], _Result]) -> _Result:
        try:
            return what()
        except RuntimeError as error:  # what all backends raise
            raise LostProcessError(error, self.patience) from None


def _work(found: dist.Work | None) -> dist.Work:
    assert found is not None, "every process is a member of the default group"
    return found


@dataclass(frozen=True)
class RingPieces:
    """All rows: everybody's own first pieces go round, then their second ones.

    Every process must go through all of them as often as the others do.
    """

    rows: Rows
    rule: GridRule
    size: int
    ring: Ring

    def __iter__(self) -> Iterator[Piece]:
        """Own pieces, and those that come by."""
        shares = [self._ranges(rank) for rank in range(self.ring.size)]
        for number in range(max(map(len, shares))):
            going = [
                ranges[number] if number < len(ranges) else (0, 0) for ranges in shares
            ]
            yield from self._go_round(going)

    def _go_round(self, going: Sequence[Range]) -> Iterator[Piece]:
        ring, (start, stop) = self.ring, going[self.ring.rank]
        piece = read_piece(self.rows, self.rule, start, stop, ring.device)
        for hop in range(1, ring.size + 1):
            finish = None
            start, stop = going[(ring.rank - hop) % ring.size]
            if hop < ring.size:
                grid = piece.canonical.grid
                coming = grid.new_empty((stop - start, self.rows.dim))
                finish = ring.start_exchange(grid, coming)
            if piece.canonical.num_nodes:
                yield piece
            if finish is not None:
                finish()
                piece = Piece(start, self.rule.from_grid(coming))

    def _ranges(self, rank: int) -> list[Range]:
        start, stop = self.ring.share(self.rows.num_nodes, rank)
        firsts = range(start, stop, self.size)
        return [(first, min(first + self.size, stop)) for first in firsts]

    def anyone(self, wanted: bool) -> bool:
        """Whether any process wants something; all of them must ask."""
        return self.ring.most(int(wanted)) > 0
