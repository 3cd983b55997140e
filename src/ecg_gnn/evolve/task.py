"""What one search is asked for."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.evolve.canonical import Canonical


@dataclass(frozen=True)
class Task:
    """The ``k`` most similar other nodes of every node of ``canonical``."""

    canonical: Canonical
    k: int
    key: int
    """Of the random choice among ties."""
    block_size: int | None = None
    """Rows of scores held at a time; None fits a memory budget."""
    progress: Callable[[int], None] = lambda count: None
    """Told how many more nodes are finished."""

    names: Tensor | None = None
    """Where this is a part of a larger search, its nodes' numbers there, ascending."""

    def part(self, ids: Tensor) -> "Task":
        """The same search among the nodes ``ids`` [n], ascending, alone."""
        rows = self.canonical.take(ids)
        return Task(rows, self.k, self.key, self.block_size, names=self.named(ids))

    def named(self, ids: Tensor) -> Tensor:
        """What nodes are called in the whole search; nobody stays the last of all."""
        if self.names is None:
            return ids
        nobody = self.names.new_tensor([torch.iinfo(self.names.dtype).max])
        return torch.cat([self.names, nobody])[ids]

    def rows_per_block(self, bytes_per_score: int, most: int) -> int:
        """How many rows of scores to hold at a time, at most ``most``."""
        if self.block_size is not None:
            return min(self.block_size, self.canonical.num_nodes)
        budget = _CUDA_SCORE_BYTES if self.canonical.grid.is_cuda else _SCORE_BYTES
        fitting = budget // (bytes_per_score * self.canonical.num_nodes)
        return max(1, min(most, fitting, self.canonical.num_nodes))


def num_candidates(k: int) -> int:
    """How many candidates per node the fast search keeps: k and room for near ties."""
    return k + max(8, k // 2)


_SCORE_BYTES = 128 << 20
_CUDA_SCORE_BYTES = 1 << 30
