"""Exact k nearest neighbours by tensor cores: half precision proposes, exact decides.

One pass over all pairs keeps the maxima of groups of columns; the groups that can
matter are looked at column by column, and the columns that can matter exactly. Where
the error bound cannot rule everybody else out, the row is left to the exact search.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ecg_gnn.evolve.exact.canonical import GRID_BITS
from ecg_gnn.evolve.exact.gpu import list_size
from ecg_gnn.evolve.exact.gpu.halves import ROWS, UNIT, Halves
from ecg_gnn.evolve.exact.gpu.maxima import GROUP, Top, group_maxima, top
from ecg_gnn.evolve.exact.ties import Proposal, Task, choose

_BUDGET = 2 << 30  # bytes of maxima and member scores at a time
SLACK = 1.5
"""How many error bounds below the k-th best score a column is still looked at. One
would do if the k-th best score had no error itself; real errors are far below their
bound."""
_DEPTH = 512  # entries of a row that a program holds at a time
_PAIRS_PER_WARP, _MAX_WARPS = 2048, 16


def search_tiled(task: Task) -> Proposal:
    """The neighbours of all nodes, as far as half precision can prove them."""
    halves, num_nodes = Halves.of(task.canonical), task.canonical.num_nodes
    panel, parts = _rows_per_panel(task), []
    with torch.cuda.device_of(halves.rows):  # Triton launches on the current device
        for start in range(0, num_nodes, panel):
            rows = slice(start, min(start + panel, num_nodes))
            parts.append(_search_rows(task, halves, rows))
            task.progress(int(parts[-1].sure.sum()))
    return Proposal.join(parts)


def _rows_per_panel(task: Task) -> int:
    num_nodes = task.canonical.num_nodes
    if task.block_size is not None:
        size = task.block_size * GROUP
    else:
        size = _BUDGET // (4 * (num_nodes // GROUP + list_size(task.k) * GROUP))
    return num_nodes if size >= num_nodes else max(1, size // ROWS) * ROWS


def _search_rows(task: Task, halves: Halves, rows: slice) -> Proposal:
    k, count = task.k, list_size(task.k)
    slack = (SLACK * halves.bound[rows]).float()
    maxima = group_maxima(halves, rows.start, rows.stop)
    groups = top(maxima, count, k, slack)
    del maxima
    scores = member_scores(halves, rows.start, groups.places)
    members = top(scores, count, k, slack)
    return decide(task, halves, rows.start, groups, members)


@triton.jit
def _member_scores(
    halves,
    shift,
    groups,
    out,
    first_row,
    num_nodes,
    num_groups,
    scale,
    WIDTH: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    row = first_row + program
    member = tl.arange(0, GROUP)
    depth = tl.arange(0, DEPTH)
    for slot in range(num_groups):
        group = tl.load(groups + program * num_groups + slot)
        scores = tl.full([GROUP], float("-inf"), tl.float32)
        if group >= 0:
            nodes = group * GROUP + member
            total = tl.zeros([GROUP, DEPTH], tl.float32)
            for first in range(0, WIDTH, DEPTH):
                there = first + depth < WIDTH
                own = tl.load(halves + row * WIDTH + first + depth, there, other=0.0)
                place = nodes.to(tl.int64)[:, None] * WIDTH + first + depth[None, :]
                rows = tl.load(halves + place, there[None, :], other=0.0)
                total += own.to(tl.float32)[None, :] * rows.to(tl.float32)
            other = (nodes < num_nodes) & (nodes != row)
            total_scores = tl.sum(total, 1) * scale + tl.load(shift + nodes)
            scores = tl.where(other, total_scores, float("-inf"))
        tl.store(out + (program * num_groups + slot) * GROUP + member, scores)


def member_scores(halves: Halves, start: int, groups: Tensor) -> Tensor:
    """Scores of the rows from ``start`` on with all members of their groups.

    Groups of columns ``[n, g]``, -1 for none, give ``[n, g * GROUP]``, without the
    row's own shift; minus infinity where there is no member.
    """
    num_rows, num_groups = groups.shape
    width = halves.rows.size(1)
    out = halves.shift.new_empty((num_rows, num_groups * GROUP))
    given = (halves.rows, halves.shift, groups, out, start, halves.num_nodes)
    depth = min(_DEPTH, triton.next_power_of_2(width))
    sizes = (num_groups, UNIT**2, width, depth, GROUP)
    _member_scores[(num_rows,)](*given, *sizes, num_warps=4)
    return out


@triton.jit
def _decide(
    grid,
    half_square,
    groups,
    places,
    outside,
    outside_groups,
    own_shift,
    bound,
    out_nodes,
    out_scores,
    out_kth,
    out_sure,
    out_tied,
    out_best,
    first_row,
    num_nodes,
    num_groups,
    count,
    k,
    scale,
    WIDTH: tl.constexpr,
    DEPTH: tl.constexpr,
    GROUP: tl.constexpr,
    LIST: tl.constexpr,
    EUCLIDEAN: tl.constexpr,
):
    program = tl.program_id(0).to(tl.int64)
    row = first_row + program
    slot = tl.arange(0, LIST)
    depth = tl.arange(0, DEPTH)
    exact = tl.full([LIST], float("-inf"), tl.float64)
    nodes = tl.full([LIST], 0, tl.int32) + num_nodes
    for index in range(count):
        place = tl.load(places + program * count + index)
        if place >= 0:
            group = tl.load(groups + program * num_groups + place // GROUP)
            node = group * GROUP + place % GROUP
            # Integers below 2^53 in every partial sum: float64 is exact.
            total = tl.zeros([DEPTH], tl.float64)
            for first in range(0, WIDTH, DEPTH):
                there = first + depth < WIDTH
                left = tl.load(grid + row * WIDTH + first + depth, there, other=0)
                other = grid + node.to(tl.int64) * WIDTH + first + depth
                right = tl.load(other, there, other=0)
                total += left.to(tl.float64) * right.to(tl.float64)
            score = tl.sum(total, 0) * scale
            if EUCLIDEAN:
                score -= tl.load(half_square + row) + tl.load(half_square + node)
            exact = tl.where(slot == index, score, exact)
            nodes = tl.where(slot == index, node, nodes)
    better = exact[None, :] > exact[:, None]
    chosen = (tl.sum(better.to(tl.int32), 1) < k) & (nodes < num_nodes)
    kth = tl.min(tl.where(chosen, exact, float("inf")), 0)
    size = tl.sum(chosen.to(tl.int32), 0)
    before = chosen[None, :] & (nodes[None, :] < nodes[:, None])
    position = tl.sum(before.to(tl.int32), 1)
    others = tl.maximum(tl.load(outside + program), tl.load(outside_groups + program))
    limit = others.to(tl.float64) + tl.load(own_shift + row) + tl.load(bound + row)
    listed = slot < count
    tl.store(out_nodes + program * count + slot, nodes.to(tl.int64), listed)
    tl.store(out_scores + program * count + slot, exact, listed)
    tl.store(out_kth + program, kth)
    tl.store(out_sure + program, (size >= k) & (kth > limit))
    tl.store(out_tied + program, size > k)
    # Of too many, those past the k-th place fall away: the caller draws among them.
    kept = chosen & (position < k)
    tl.store(out_best + program * k + position, nodes.to(tl.int64), kept)


def decide(
    task: Task, halves: Halves, start: int, groups: Top, members: Top
) -> Proposal:
    """Compare the chosen ``members`` of the chosen ``groups`` exactly.

    With the k-th exact similarity above what the scores of everybody else allow, a row
    is sure, ties at the k-th included.
    """
    num_rows, count = members.places.shape
    canonical, k = task.canonical, task.k
    grid, dim = canonical.grid, canonical.grid.size(1)
    nodes = grid.new_empty((num_rows, count), dtype=torch.int64)
    scores, kth = (
        torch.empty_like(nodes, dtype=torch.float64),
        halves.own.new_empty(num_rows),
    )
    sure, tied = (grid.new_empty(num_rows, dtype=torch.bool) for _ in range(2))
    best = nodes.new_empty((num_rows, k))
    size = triton.next_power_of_2(count)
    exact = (grid, canonical.half_square, groups.places, members.places)
    limits = (members.outside, groups.outside, halves.own, halves.bound)
    made = (nodes, scores, kth, sure, tied, best)
    counts = (start, halves.num_nodes, groups.places.size(1), count, k)
    depth = min(_DEPTH, triton.next_power_of_2(dim))
    sizes = (2.0 ** (-2 * GRID_BITS), dim, depth, GROUP, size, canonical.euclidean)
    warps = min(_MAX_WARPS, max(1, size * size // _PAIRS_PER_WARP))
    _decide[(num_rows,)](*exact, *limits, *made, *counts, *sizes, num_warps=warps)
    drawn = (sure & tied).nonzero().squeeze(1)
    if drawn.numel():
        ids, order = nodes[drawn].sort(1)  # the draw goes by rank among ascending ids
        given = (drawn + start, scores[drawn].gather(1, order), kth[drawn], ids)
        best[drawn] = choose(k, task.key, *given)
    return Proposal(best, sure)
