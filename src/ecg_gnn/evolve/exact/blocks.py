"""The exact search without all rows in memory: blocks of rows against blocks of all.

Scores in float32 rule out what cannot reach the k-th similarity so far; what is left is
compared exactly. So the lists of nearest nodes are right at any time, and lists of ever
more blocks are the lists of all. It needs plain torch only, and is also the search in
memory where neither compiled code nor a GPU's kernels can do it.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import Canonical, GridRule, chunk_elements
from ecg_gnn.evolve.exact.task import Operand, full_precision
from ecg_gnn.evolve.exact.ties import (
    NOBODY,
    Boundary,
    choose_by_groups,
    num_candidates,
)
from ecg_gnn.evolve.query import Query, Range, Rows
from ecg_gnn.kernels.rows import distinct_rows, first_of_group
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.memory import out_of_memory

_MAX_TILE, _MAX_CUDA_TILE = 2048, 8192
_MIN_ROWS = 16
_SCORES_PER_PAIR = 128
"""With fewer scores to a pair that has to be looked at (or to a place in the table of
such pairs), a whole tile of exact scores costs less."""
# Bytes of what is in memory at a time.
_SCORE_BYTES = 48  # in float32 and as a bit, exactly in float64, and where it is a tie
_ENTRY_BYTES = 32  # of rows on the grid and as float32 operands, in both blocks
_TILE_ENTRY_BYTES = 64  # float32 and float64 operands of both sides of a tile
_CANDIDATE_BYTES = 80  # number and similarity, also while lists are merged or sorted
_CHUNK_BYTES = 40  # an entry while it is put on the grid or centred, in float64
_TIE_BYTES = 32  # of a node, for a row that ties with more nodes than its list holds


class Block(NamedTuple):
    """Consecutive rows, and the number of the first."""

    start: int
    canonical: Canonical

    def tiles(self, size: int) -> Iterator["Block"]:
        """The same in smaller parts, ascending."""
        for first in range(0, self.canonical.num_nodes, size):
            part = self.canonical.take(slice(first, first + size))
            yield Block(self.start + first, part)

    def leave_out(self, nodes: Tensor, scores: Tensor) -> None:
        """Overwrite the scores [n, m] of nodes [n] with themselves."""
        own = nodes - self.start
        here = ((own >= 0) & (own < self.canonical.num_nodes)).nonzero().squeeze(1)
        scores[here, own[here]] = -torch.inf


class NearestLists:
    """The most similar nodes of some rows among all blocks that were offered.

    Args:
        nodes: The numbers of the rows. ``[n]``
        canonical: The rows.
        k: Neighbours per row.
        tile: Rows of either side that are compared at once.
        floor: What the k-th similarity of each row is known to reach. ``[n]``
    """

    def __init__(
        self,
        nodes: Tensor,
        canonical: Canonical,
        k: int,
        tile: int,
        floor: Tensor | None = None,
    ) -> None:
        self.nodes, self.canonical, self.k, self.tile = nodes, canonical, k, tile
        self.width = num_candidates(k)
        shape, like = (nodes.numel(), self.width), canonical.half_square
        self.values = like.new_full(shape, -torch.inf)  # best first
        self.ids = nodes.new_full(shape, NOBODY)
        self.limit = like.new_full(shape[:1], -torch.inf)
        """Of each row: nobody outside its list is more similar"""
        self.floor = self.limit.clone() if floor is None else floor
        self.mean = canonical.mean()
        self.offset = canonical.offset(self.mean)
        self.operand = Operand.of(canonical, self.mean)

    @property
    def kth(self) -> Tensor:
        """The k-th similarity of every row so far: [n]."""
        return self.values[:, self.k - 1]

    def offer(self, block: Block) -> None:
        """Compare all rows with a block."""
        for tile in block.tiles(self.tile):
            other = Operand.of(tile.canonical, self.mean)
            right, error = other.right(), self.operand.error(other)
            for start in range(0, self.nodes.numel(), self.tile):
                rows = slice(start, min(start + self.tile, self.nodes.numel()))
                self._offer(rows, tile, right, error[rows])

    def _offer(self, rows: slice, tile: Block, right: Tensor, error: Tensor) -> None:
        with full_precision(right.device):
            scores = self.operand.left[rows] @ right.t()
        tile.leave_out(self.nodes[rows], scores)
        least = torch.maximum(self.kth[rows], self.floor[rows]) - self.offset - error
        # Rounded down: not even a tie is ruled out.
        least = torch.nextafter(least.float(), scores.new_full((), -torch.inf))
        asked = (scores.amax(1) >= least).nonzero().squeeze(1)
        if not asked.numel():
            return
        reached = scores[asked] >= least[asked].unsqueeze(1)
        table = asked.numel() * int(reached.sum(1).amax())
        if table * _SCORES_PER_PAIR > scores.numel():
            del scores, reached
            self._compare_all(rows, tile)
        else:
            row, column = reached.nonzero(as_tuple=True)
            self._compare(asked + rows.start, tile, row, column)

    def _compare_all(self, rows: slice, tile: Block) -> None:
        scores = self.canonical.take(rows).scores_with(tile.canonical)
        tile.leave_out(self.nodes[rows], scores)
        # One more than are kept says what all others are below.
        values, column = scores.topk(min(self.width + 1, scores.size(1)))
        self._merge(rows, values, column + tile.start)

    def _compare(self, rows: Tensor, tile: Block, row: Tensor, column: Tensor) -> None:
        """Compare single pairs: places in ``rows``, each there and ascending."""
        scores = self.canonical.pairs_with(tile.canonical, rows[row], column)
        count = torch.bincount(row, minlength=rows.numel())
        place = torch.arange(row.numel(), device=row.device)
        place -= (count.cumsum(0) - count)[row]
        shape = (rows.numel(), int(count.max()))
        values = scores.new_full(shape, -torch.inf)
        ids = self.ids.new_full(shape, NOBODY)
        values[row, place] = scores
        ids[row, place] = column + tile.start
        self._merge(rows, values, ids)

    def _merge(self, rows: slice | Tensor, values: Tensor, ids: Tensor) -> None:
        values = torch.cat([self.values[rows], values], 1)
        ids = torch.cat([self.ids[rows], ids], 1)
        kept, place = values.topk(self.width + 1)
        self.values[rows] = kept[:, :-1]
        self.ids[rows] = ids.gather(1, place[:, :-1])
        self.limit[rows] = torch.maximum(self.limit[rows], kept[:, -1])

    def choose(self, key: int) -> tuple[Tensor, Tensor]:
        """The neighbours of every row [n, k], and the rows that are not settled [c].

        More nodes tie for the last places of these than a list holds.
        """
        found = self.ids.new_empty((self.nodes.numel(), self.k))
        for start in range(0, self.nodes.numel(), self.tile):
            rows = slice(start, start + self.tile)
            ids, order = self.ids[rows].sort(1)
            scores = self.values[rows].gather(1, order)
            boundary = Boundary.at(scores, self.kth[rows], ids)
            row = torch.arange(ids.size(0), device=ids.device)
            own = self.nodes[rows]
            found[rows] = boundary.choose(self.k, key, own, row, None)
        return found, (self.limit >= self.kth).nonzero().squeeze(1)


def search_nodes(
    lists: NearestLists, key: int, blocks: Iterable[Block], num_nodes: int, room: int
) -> Tensor:
    """The neighbours of the rows of ``lists`` among all nodes, ascending: [n, k].

    Args:
        lists: Empty ones.
        key: Of the random choice among ties.
        blocks: All rows, ascending; they may be gone through several times.
        num_nodes: How many these are.
        room: Bytes for rows with more ties than a list holds.
    """
    for block in blocks:
        lists.offer(block)
    found, tied = lists.choose(key)
    if not tied.numel():
        return found
    rows = lists.canonical.take(tied)
    group = distinct_rows(rows.grid)
    first = first_of_group(group)

    def scores(some: slice) -> Tensor:
        part = rows.take(first[some])
        whole = part.half_square.new_empty((part.num_nodes, num_nodes))
        for block in blocks:
            stop = block.start + block.canonical.num_nodes
            whole[:, block.start : stop] = part.scores_with(block.canonical)
        return whole

    nodes, size = lists.nodes[tied], max(1, room // (_TIE_BYTES * num_nodes))
    leaders = nodes[first]
    found[tied] = choose_by_groups(lists.k, key, nodes, group, leaders, scores, size)
    return found


@dataclass(frozen=True)
class Layout:
    """How many rows are in memory at a time."""

    block: int
    """Rows whose neighbours are looked for, and rows that they are compared with"""
    tile: int
    """Rows of both that are compared at once"""
    room: int
    """Bytes that rows with very many ties may take, in place of a tile"""

    @classmethod
    def fit(cls, rows: Rows, k: int, budget: int, *, on_gpu: bool = False) -> "Layout":
        """The largest blocks that stay within ``budget`` bytes."""
        least = min_bytes(rows, k, on_gpu=on_gpu)
        if least > budget:
            raise InputError(
                f"'memory' must be at least {least:,} bytes for rows of {rows.dim} "
                f"numbers and k = {k} (got {budget:,})"
            )
        tile = _MAX_CUDA_TILE if on_gpu else _MAX_TILE
        while tile > _MIN_ROWS and 2 * _tile_bytes(tile, rows, k) > budget:
            tile //= 2
        per_row = num_candidates(k) * _CANDIDATE_BYTES + rows.dim * _ENTRY_BYTES
        chunk = chunk_elements(on_gpu) * _CHUNK_BYTES
        left = budget - _tile_bytes(tile, rows, k)
        # A chunk is at most a block.
        most = max(
            (left - chunk) // per_row, left // (per_row + rows.dim * _CHUNK_BYTES)
        )
        block = min(max(most, _MIN_ROWS), rows.num_nodes)
        return cls(block, min(tile, block), budget - block * per_row)


def _tile_bytes(tile: int, rows: Rows, k: int) -> int:
    lists = num_candidates(k) * _CANDIDATE_BYTES
    scores = tile * (tile * _SCORE_BYTES + rows.dim * _TILE_ENTRY_BYTES + lists)
    return max(scores, rows.num_nodes * _TIE_BYTES)


def min_bytes(rows: Rows, k: int, *, on_gpu: bool = False) -> int:
    """What a search in the smallest blocks takes."""
    per_row = num_candidates(k) * _CANDIDATE_BYTES + rows.dim * _ENTRY_BYTES
    chunk = min(chunk_elements(on_gpu), _MIN_ROWS * rows.dim) * _CHUNK_BYTES
    return _MIN_ROWS * per_row + chunk + _tile_bytes(_MIN_ROWS, rows, k)


@dataclass(frozen=True)
class _AllBlocks:
    """All rows, read block by block whenever somebody goes through them."""

    rows: Rows
    rule: GridRule
    size: int
    device: torch.device

    def __iter__(self) -> Iterator[Block]:
        for start in range(0, self.rows.num_nodes, self.size):
            yield self.read(start, min(start + self.size, self.rows.num_nodes))

    def read(self, start: int, stop: int) -> Block:
        return Block(start, self.rule.apply(self.rows.read(start, stop, self.device)))


def search_blocks(
    rows: Rows, query: Query, memory: int, ranges: Iterable[Range]
) -> Iterator[tuple[int, Tensor]]:
    """The neighbours of the rows in ``ranges``, block by block.

    Where memory runs out all the same, it goes on with half of it.

    Yields:
        The first row of a block, and its rows' neighbours on the CPU, ``[n, k]``.
    """
    rule, on_gpu = GridRule.of(rows.z, query.metric), query.device.type == "cuda"
    layout = Layout.fit(rows, query.k, memory, on_gpu=on_gpu)
    left = list(ranges)
    while left:
        start, end = left[0]
        stop = min(start + layout.block, end)
        try:
            found = search_block(rows, rule, query, layout, (start, stop)).cpu()
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            memory = _half(memory, layout, rows, query.k, on_gpu=on_gpu)
            layout = Layout.fit(rows, query.k, memory, on_gpu=on_gpu)
            continue
        left[:1] = [(stop, end)] if stop < end else []
        yield start, found


def search_block(
    rows: Rows, rule: GridRule, query: Query, layout: Layout, part: Range
) -> Tensor:
    """The neighbours of one block of rows among all: [n, k]."""
    blocks = _AllBlocks(rows, rule, layout.block, query.device)
    nodes = torch.arange(*part, device=query.device)
    lists = NearestLists(nodes, blocks.read(*part).canonical, query.k, layout.tile)
    return search_nodes(lists, query.key, blocks, rows.num_nodes, layout.room)


def _half(memory: int, layout: Layout, rows: Rows, k: int, *, on_gpu: bool) -> int:
    """Half of a budget that was too large, and a word about it."""
    half, least = memory // 2, min_bytes(rows, k, on_gpu=on_gpu)
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
