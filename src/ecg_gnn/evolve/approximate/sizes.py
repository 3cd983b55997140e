"""How large an index is, and how much of it is looked at together."""

import math

TRAINED_PER_CELL = 64
"""Rows, for each cell, that the cells' centres are placed by."""
LINKS = 32
"""Of a row in a small world."""
_CELLS_PER_ROOT = 4
_ROWS_PER_CELL = 39
"""Fewer, and faiss finds that too few to place a cell by."""
_BYTES_PER_LINK = 10
_CELLS_ENTRY_BYTES, _CELLS_ROW_BYTES = 20, 512
_TILE, _CUDA_TILE = 1024, 1 << 17
_PAIRS_AT_A_TIME, _CUDA_PAIRS_AT_A_TIME = 1 << 18, 1 << 22


def num_cells(num_nodes: int) -> int:
    """Cells of an inverted file: some roots of the number of rows."""
    most = num_nodes // _ROWS_PER_CELL
    return max(1, min(_CELLS_PER_ROOT * math.isqrt(num_nodes), most))


def index_bytes(num_nodes: int, dim: int, *, on_gpu: bool = False) -> int:
    """What an approximate search holds, roughly: rows on the grid and in the index."""
    if on_gpu:
        return num_nodes * (_CELLS_ENTRY_BYTES * dim + _CELLS_ROW_BYTES)
    return num_nodes * (8 * dim + 2 * LINKS * _BYTES_PER_LINK)


def exact_tile(*, on_gpu: bool) -> int:
    """Rows that are compared exactly at a time: a GPU pays per launch."""
    return _CUDA_TILE if on_gpu else _TILE


def rows_at_a_time(candidates: int, *, on_gpu: bool) -> int:
    """Rows whose so many candidates each are looked at together."""
    pairs = _CUDA_PAIRS_AT_A_TIME if on_gpu else _PAIRS_AT_A_TIME
    return max(1, pairs // candidates)
