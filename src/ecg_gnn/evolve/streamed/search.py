"""The neighbours of all rows, block by block."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from ecg_gnn.evolve.canonical import Canonical, GridRule
from ecg_gnn.evolve.streamed.best import Best
from ecg_gnn.evolve.streamed.crowded import draw_crowded
from ecg_gnn.evolve.streamed.finished import Finished, count_rows
from ecg_gnn.evolve.streamed.layout import Layout
from ecg_gnn.evolve.streamed.pieces import LocalPieces, Piece, Pieces, read_piece
from ecg_gnn.evolve.streamed.rows import Rows
from ecg_gnn.system.memory import out_of_memory


def search_block(block: Piece, k: int, key: int, pieces: Pieces, tile: int) -> Tensor:
    """The neighbours of a block of rows among all pieces, ascending: [n, k]."""
    first, num_rows = block.start, block.canonical.num_nodes
    device = block.canonical.grid.device
    nodes = torch.arange(first, first + num_rows, device=device)
    return search_nodes(nodes, block.canonical, k, key, pieces, tile)


def search_nodes(
    nodes: Tensor, rows: Canonical, k: int, key: int, pieces: Pieces, tile: int
) -> Tensor:
    """The neighbours of any ``nodes`` [n] with their ``rows``: [n, k]."""
    best = Best(nodes, rows, k, tile)
    for piece in pieces:
        best.offer(piece)
    found, crowded = best.settle(key)
    if pieces.anyone(crowded.numel() > 0):
        found[crowded] = draw_crowded(best, crowded, key, pieces)
    return found


def search_streamed(
    rows: Rows,
    rule: GridRule,
    k: int,
    key: int,
    memory: int,
    device: torch.device,
    finished: Finished,
    progress: Callable[[int], None],
) -> None:
    """Find the neighbours that are not finished yet, within a memory budget.

    Where memory runs out all the same, it goes on with half of it.
    """
    on_gpu = device.type == "cuda"
    layout = Layout.fit(rows.num_nodes, rows.dim, k, memory, on_gpu=on_gpu)
    progress(rows.num_nodes - count_rows(finished.missing()))
    while True:
        pieces = LocalPieces(rows, rule, layout.piece, device)
        try:
            for missing in finished.missing():
                for start, stop in layout.split(*missing):
                    block = read_piece(rows, rule, start, stop, device)
                    found = search_block(block, k, key, pieces, layout.tile)
                    finished.keep(start, found.cpu())
                    progress(stop - start)
            return
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
        memory = _half(memory, layout, rows, k)
        layout = Layout.fit(rows.num_nodes, rows.dim, k, memory, on_gpu=on_gpu)


def _half(memory: int, layout: Layout, rows: Rows, k: int) -> int:
    """Half of a budget that was too large, and a word about it."""
    half, least = memory // 2, Layout.least_bytes(rows.dim, k, on_gpu=layout.on_gpu)
    size = f"{rows.num_nodes:,} × {rows.dim} embeddings in blocks of {layout.block:,}"
    if half < least:
        raise MemoryError(
            f"the kNN search of {size} rows, the smallest there are "
            f"({least / 2**20:.1f} MiB), does not fit: free memory, or lower the "
            f"embedding's width to {max(1, rows.dim // 2)} (now {rows.dim}) or k to "
            f"{max(1, k // 2)} (now {k})"
        )
    warnings.warn(
        f"memory ran out in the kNN search of {size} rows: it goes on with "
        f"{half >> 20} MiB instead of {memory >> 20} MiB",
        stacklevel=2,
    )
    return half
