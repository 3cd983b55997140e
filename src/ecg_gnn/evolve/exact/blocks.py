"""The exact search without all rows in memory: blocks of rows against blocks of all.

Scores in float32 rule out what cannot reach the k-th similarity so far; what is left is
compared exactly, so the lists of nearest nodes are right at any time. In plain torch:
it also searches in memory where compiled code and kernels cannot.
"""

import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import (
    Canonical,
    GridRule,
    Operand,
    chunk_elements,
    full_precision,
)
from ecg_gnn.evolve.exact.ties import (
    NOBODY,
    choose,
    choose_by_groups,
    num_candidates,
    rank_in_row,
)
from ecg_gnn.evolve.query import Query, Rows
from ecg_gnn.kernels.hashing import distinct_rows, first_of_group
from ecg_gnn.system.cached import cached_property
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.machine import out_of_memory

MAX_TILE, MAX_CUDA_TILE = 2048, 8192
_MIN_ROWS = 16
_SCORES_PER_PAIR = 128
"""With fewer scores per pair to be compared, a whole tile of exact scores is faster."""
# Bytes held at a time, for each:
_SCORE_BYTES = 48  # in float32 and as a bit, exactly in float64, and where it is a tie
_ENTRY_BYTES = 32  # of rows on the grid and as float32 operands, in both blocks
_TILE_ENTRY_BYTES = 64  # float32 and float64 operands of both sides of a tile
_CANDIDATE_BYTES = 80  # number and similarity, also while lists are merged or sorted
_CHUNK_BYTES = 40  # an entry while it is put on the grid or centred, in float64
_TIE_BYTES = 32  # of a node, for a row that ties with more than its list holds


class Block(NamedTuple):
    """Consecutive rows, and the number of the first."""

    start: int
    canonical: Canonical

    def leave_out(self, nodes: Tensor, scores: Tensor) -> None:
        """Overwrite the scores [n, m] of nodes [n] with themselves."""
        own = nodes - self.start
        here = ((own >= 0) & (own < self.canonical.num_nodes)).nonzero().squeeze(1)
        scores[here, own[here]] = -torch.inf


class NearestLists:
    """The most similar nodes of the rows ``nodes`` [n] among all blocks offered.

    ``tile`` rows of either side are compared at once.
    """

    def __init__(self, nodes: Tensor, canonical: Canonical, k: int, tile: int) -> None:
        self.nodes, self.canonical, self.k, self.tile = nodes, canonical, k, tile
        self.width = num_candidates(k)
        shape, like = (nodes.numel(), self.width), canonical.half_square
        self.values = like.new_full(shape, -torch.inf)  # best first
        self.ids = nodes.new_full(shape, NOBODY)
        self.limit = like.new_full(shape[:1], -torch.inf)
        """Of each row: nobody outside its list is more similar"""

    @cached_property
    def operand(self) -> Operand:
        """The rows, ready for float32 products."""
        return Operand.of(self.canonical, self.canonical.mean())

    @property
    def kth(self) -> Tensor:
        """The k-th similarity of every row so far: [n]."""
        return self.values[:, self.k - 1]

    def offer(self, block: Block) -> None:
        """Compare all rows with a block."""
        for first in range(0, block.canonical.num_nodes, self.tile):
            some = block.canonical.take(slice(first, first + self.tile))
            tile = Block(block.start + first, some)
            other = Operand.of(tile.canonical, self.operand.mean)
            right, error = other.right(), self.operand.error(other)
            for start in range(0, self.nodes.numel(), self.tile):
                rows = slice(start, min(start + self.tile, self.nodes.numel()))
                self._offer(rows, tile, right, error[rows])

    def _offer(self, rows: slice, tile: Block, right: Tensor, error: Tensor) -> None:
        with full_precision(right.device):
            scores = self.operand.left[rows] @ right.t()
        tile.leave_out(self.nodes[rows], scores)
        least = self.kth[rows] - self.operand.constant - error
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
            self.compare(asked + rows.start, tile, row, column)

    def _compare_all(self, rows: slice, tile: Block) -> None:
        scores = self.canonical.take(rows).scores_with(tile.canonical)
        tile.leave_out(self.nodes[rows], scores)
        # One more than are kept says what all others are below.
        values, column = scores.topk(min(self.width + 1, scores.size(1)))
        self._merge(rows, values, column + tile.start)

    def compare(self, rows: Tensor, tile: Block, row: Tensor, column: Tensor) -> None:
        """Compare single pairs: places in ``rows``, each there and ascending."""
        scores = self.canonical.pairs_with(tile.canonical, rows[row], column)
        place = rank_in_row(row, rows.numel())
        shape = (rows.numel(), 1 + int(place.max()) if row.numel() else 0)
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
        """The neighbours of all rows [n, k], and rows with more ties than fit [c]."""
        neighbours = self.ids.new_empty((self.nodes.numel(), self.k))
        for start in range(0, self.nodes.numel(), self.tile):
            rows = slice(start, start + self.tile)
            ids, order = self.ids[rows].sort(1)
            scores = self.values[rows].gather(1, order)
            given = (self.nodes[rows], scores, self.kth[rows], ids)
            neighbours[rows] = choose(self.k, key, *given)
        return neighbours, (self.limit >= self.kth).nonzero().squeeze(1)


def search_nodes(
    lists: NearestLists,
    key: int,
    blocks: Callable[[], Iterable[Block]],
    max_tied_rows: int,
) -> Tensor:
    """The neighbours of the rows of ``lists`` among all nodes, ascending: [n, k].

    ``blocks`` gives all rows, several times if need be. Of rows with more ties than a
    list holds, ``max_tied_rows`` different ones are looked at together.
    """
    for block in blocks():
        lists.offer(block)
    neighbours, tied = lists.choose(key)
    if tied.numel():
        rows, nodes = lists.canonical.take(tied), lists.nodes[tied]
        group = distinct_rows(rows.grid)
        first = first_of_group(group)

        def scores(some: slice) -> Tensor:
            part = rows.take(first[some])
            return torch.cat([part.scores_with(b.canonical) for b in blocks()], 1)

        given = (nodes, group, nodes[first], scores, max_tied_rows)
        neighbours[tied] = choose_by_groups(lists.k, key, *given)
    return neighbours


class Layout(NamedTuple):
    """How many rows are in memory at a time, and the bytes for all of it."""

    block: int  # rows whose neighbours are looked for, and rows they are compared with
    tile: int  # of both that are compared at once
    max_tied_rows: int  # with very many ties, looked at together in place of a tile
    budget: int
    on_gpu: bool

    @classmethod
    def fit(cls, rows: Rows, k: int, budget: int, *, on_gpu: bool = False) -> "Layout":
        """The largest blocks that stay within ``budget`` bytes."""
        least = min_bytes(rows, k, on_gpu=on_gpu)
        if least > budget:
            raise InputError(
                f"'memory' must be at least {least:,} bytes for rows of {rows.dim} "
                f"numbers and k = {k} (got {budget:,})"
            )
        size = partial(_bytes, rows=rows, k=k, on_gpu=on_gpu)
        tile = MAX_CUDA_TILE if on_gpu else MAX_TILE
        while tile > _MIN_ROWS and 2 * size(_MIN_ROWS, tile) > budget:
            tile //= 2
        counts = range(_MIN_ROWS, max(_MIN_ROWS, rows.num_nodes) + 1)
        fitting = bisect_right(counts, budget, key=lambda count: size(count, tile))
        block = min(counts[fitting - 1], rows.num_nodes)
        tied = 1 + (budget - size(block, 0)) // (rows.num_nodes * _TIE_BYTES)
        return cls(block, min(tile, block), tied, budget, on_gpu)


def min_bytes(rows: Rows, k: int, *, on_gpu: bool = False) -> int:
    """What a search in the smallest blocks takes."""
    return _bytes(_MIN_ROWS, _MIN_ROWS, rows, k, on_gpu=on_gpu)


def _bytes(block: int, tile: int, rows: Rows, k: int, *, on_gpu: bool) -> int:
    lists = (block + tile) * num_candidates(k) * _CANDIDATE_BYTES
    scores = tile * (tile * _SCORE_BYTES + rows.dim * _TILE_ENTRY_BYTES)
    chunk = min(chunk_elements(on_gpu), block * rows.dim) * _CHUNK_BYTES
    held = block * rows.dim * _ENTRY_BYTES
    return lists + held + chunk + max(scores, rows.num_nodes * _TIE_BYTES)


def search_blocks(
    rows: Rows, query: Query, layout: Layout, start: int = 0, stop: int | None = None
) -> Iterator[tuple[int, Tensor]]:
    """The neighbours of the rows from ``start`` to ``stop``, block by block.

    Yields the first row of a block, and its rows' neighbours on the CPU, ``[n, k]``. If
    memory runs out all the same, it goes on with half of it.
    """
    rule = GridRule.of(rows.z, query.metric)
    stop = rows.num_nodes if stop is None else stop
    while start < stop:
        end = min(start + layout.block, stop)
        try:
            block = search_block(rows, rule, query, layout, (start, end)).cpu()
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            layout = _half(layout, rows, query.k)
            continue
        yield start, block
        start = end


def search_block(
    rows: Rows, rule: GridRule, query: Query, layout: Layout, part: tuple[int, int]
) -> Tensor:
    """The neighbours of one block of rows among all: [n, k]."""

    def read(start: int) -> Block:
        stop = min(start + layout.block, rows.num_nodes)
        return Block(start, rule.apply(rows.read(start, stop, query.device)))

    def blocks() -> Iterator[Block]:
        return map(read, range(0, rows.num_nodes, layout.block))

    nodes = torch.arange(*part, device=query.device)
    own = rule.apply(rows.read(*part, query.device))
    lists = NearestLists(nodes, own, query.k, layout.tile)
    return search_nodes(lists, query.key, blocks, layout.max_tied_rows)


def _half(layout: Layout, rows: Rows, k: int) -> Layout:
    """Smaller blocks, for half of a budget that was too large."""
    half, least = layout.budget // 2, min_bytes(rows, k, on_gpu=layout.on_gpu)
    if half < least:
        raise MemoryError(
            f"a kNN search among {rows.num_nodes:,} × {rows.dim} embeddings needs at "
            f"least {least / 2**20:.1f} MiB: free memory, or lower the embedding's "
            f"width to {max(1, rows.dim // 2)} (now {rows.dim}) or k to "
            f"{max(1, k // 2)} (now {k})"
        )
    warnings.warn(
        f"memory ran out in the kNN search: it goes on with {half >> 20} MiB instead "
        f"of {layout.budget >> 20} MiB",
        stacklevel=2,
    )
    return Layout.fit(rows, k, half, on_gpu=layout.on_gpu)
