"""How large an index is."""

import math

TRAINED_PER_CELL = 64
"""Rows, for each cell, that the cells' centres are placed by."""
LINKS = 32
"""Of a row in a small world."""
_CELLS_PER_ROOT = 4
_ROWS_PER_CELL = 39
"""Fewer, and faiss finds that too few to place a cell by."""
_BYTES_PER_LINK = 10
_CELLS_ENTRY_BYTES, _CELLS_ROW_BYTES = 16, 512


def num_cells(num_nodes: int) -> int:
    """Cells of an inverted file: some roots of the number of rows."""
    most = num_nodes // _ROWS_PER_CELL
    return max(1, min(_CELLS_PER_ROOT * math.isqrt(num_nodes), most))


def index_bytes(num_nodes: int, dim: int, *, on_gpu: bool = False) -> int:
    """What an approximate search holds, roughly: rows on the grid and in the index."""
    if on_gpu:
        return num_nodes * (_CELLS_ENTRY_BYTES * dim + _CELLS_ROW_BYTES)
    return num_nodes * (8 * dim + 2 * LINKS * _BYTES_PER_LINK)
