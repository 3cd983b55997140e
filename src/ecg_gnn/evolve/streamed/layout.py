"""How many rows at a time: what a memory budget allows."""

from dataclasses import dataclass

from ecg_gnn.evolve.canonical import chunk_elements
from ecg_gnn.evolve.task import num_candidates
from ecg_gnn.system.checks import InputError

_MOST_TILE, _MOST_CUDA_TILE = 2048, 8192
_LEAST_ROWS = 16
_TILE_BYTES = 48
"""A score in float32 and as a bit, exactly in float64, and where it is a tie."""
_ENTRY_BYTES = 16
"""An entry of a row on the grid, and a float32 operand or a row that is on its way."""
_TILE_ENTRY_BYTES = 64
"""An entry of a tile's row: float32 and float64 operands of both sides."""
_LIST_BYTES = 80
"""A candidate: number and similarity, also while lists are merged or sorted."""
_CHUNK_BYTES = 40
"""An entry while it is put on the grid or centred, a chunk at a time, in float64."""


@dataclass(frozen=True)
class Layout:
    """Sizes of what is in memory at a time."""

    block: int
    """Rows whose neighbours are looked for"""
    piece: int
    """Rows that they are compared with"""
    tile: int
    """Rows of both that are compared at once"""
    on_gpu: bool = False

    @classmethod
    def fit(
        cls, num_nodes: int, dim: int, k: int, budget: int, *, on_gpu: bool = False
    ) -> "Layout":
        """The largest blocks that stay within ``budget`` bytes."""
        least = cls.least_bytes(dim, k, on_gpu=on_gpu)
        if least > budget:
            raise InputError(
                f"'memory' must be at least {least:,} bytes for rows of {dim} numbers "
                f"and k = {k} (got {budget:,})"
            )
        tile = _MOST_CUDA_TILE if on_gpu else _MOST_TILE
        while (
            tile > _LEAST_ROWS
            and 2 * cls(_LEAST_ROWS, _LEAST_ROWS, tile, on_gpu).bytes(dim, k) > budget
        ):
            tile //= 2
        low, high = _LEAST_ROWS, max(_LEAST_ROWS, num_nodes)
        while low < high:  # the most rows that fit
            rows = (low + high + 1) // 2
            if cls(rows, rows, tile, on_gpu).bytes(dim, k) <= budget:
                low = rows
            else:
                high = rows - 1
        rows = min(low, num_nodes)
        return cls(rows, rows, min(tile, rows), on_gpu)

    @classmethod
    def least_bytes(cls, dim: int, k: int, *, on_gpu: bool = False) -> int:
        """What the smallest blocks take."""
        return cls(_LEAST_ROWS, _LEAST_ROWS, _LEAST_ROWS, on_gpu).bytes(dim, k)

    def bytes(self, dim: int, k: int) -> int:
        """What all of it takes, at most."""
        lists = (self.block + self.tile) * num_candidates(k) * _LIST_BYTES
        held = (self.block + self.piece) * dim * _ENTRY_BYTES
        scores = self.tile * (self.tile * _TILE_BYTES + dim * _TILE_ENTRY_BYTES)
        chunk = min(chunk_elements(self.on_gpu), max(self.block, self.piece) * dim)
        return lists + held + scores + chunk * _CHUNK_BYTES

    def split(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Blocks of some rows."""
        firsts = range(start, stop, self.block)
        return [(first, min(first + self.block, stop)) for first in firsts]
