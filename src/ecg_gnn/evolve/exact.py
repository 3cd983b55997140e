"""Neighbours from exact similarities, where float32 cannot decide."""

import torch
from torch import Tensor

from ecg_gnn.evolve.task import Task
from ecg_gnn.evolve.ties import Boundary
from ecg_gnn.kernels.distinct_rows import first_of_group

_SCORE_BYTES = 32  # per score: the float64, two masks, and the places of the ties
_MAX_ROWS = 1024
_BOUNDS_AT_A_TIME = 64
_NODES_PER_PIVOT, _MAX_PIVOTS = 64, 512
_CUDA_NODES_PER_PIVOT = 2048  # a GPU multiplies more readily than it launches


def search_groups(task: Task, groups: Tensor, nodes: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n], computed once per distinct row: [n, k].

    Nodes with equal rows share their similarities; only the draw among ties is their
    own. So a constant embedding of any size costs one row of scores.
    """
    leaders = first_of_group(groups)
    wanted, row_of = torch.unique(groups[nodes], return_inverse=True)
    order = row_of.argsort(stable=True)
    counts = torch.bincount(row_of, minlength=wanted.numel())
    ids = torch.arange(task.canonical.num_nodes, device=nodes.device)
    found = nodes.new_empty((nodes.numel(), task.k))
    block = task.rows_per_block(_SCORE_BYTES, _MAX_ROWS)
    done = 0
    for start in range(0, wanted.numel(), block):
        rows = leaders[wanted[start : start + block]]
        scores = task.canonical.scores(rows, leaders)[:, groups]
        boundary = _boundary(task.k, scores, rows, ids)
        size = int(counts[start : start + block].sum())
        asked = order[done : done + size]
        done += size
        node = nodes[asked]
        found[asked] = boundary.choose(
            task.k, task.key, node, row_of[asked] - start, node
        )
        task.progress(size)
    return found


def _boundary(k: int, scores: Tensor, own: Tensor, ids: Tensor) -> Boundary:
    """The k-th similarity of each row without its ``own`` column."""
    place = own.unsqueeze(1)
    value = scores.gather(1, place)
    scores.scatter_(1, place, -torch.inf)
    threshold = scores.topk(k, sorted=False).values.amin(1)
    # Back in: another node with the same row leaves out its own column instead.
    scores.scatter_(1, place, value)
    return Boundary.at(scores, threshold, ids)


def search_pruned(task: Task, nodes: Tensor, floor: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n] whose k-th similarity is at least ``floor`` [n].

    Trained embeddings form tight clusters, in which float32 decides little but in
    which all nodes agree on who is far away: nodes are taken cluster by cluster, and
    only columns that a bound cannot rule out for the whole cluster are computed.
    """
    canonical = task.canonical
    rows = canonical.rows(torch.arange(canonical.num_nodes, device=nodes.device))
    found = nodes.new_empty((nodes.numel(), task.k))
    parts = _clusters(rows, nodes, task.rows_per_block(_SCORE_BYTES, _MAX_ROWS))
    for first in range(0, len(parts), _BOUNDS_AT_A_TIME):
        some = parts[first : first + _BOUNDS_AT_A_TIME]
        for asked, keep in zip(
            some, _reachable(task, rows, nodes, floor, some), strict=True
        ):
            node = nodes[asked]
            keep[node] = True
            ids = keep.nonzero().squeeze(1)
            own = torch.searchsorted(ids, node)
            scores = _scores(task, rows, node, ids)
            boundary = _boundary(task.k, scores, own, ids)
            row = torch.arange(node.numel(), device=node.device)
            found[asked] = boundary.choose(task.k, task.key, node, row, own)
            task.progress(node.numel())
    return found


def _scores(task: Task, rows: Tensor, left: Tensor, right: Tensor) -> Tensor:
    everybody = right.numel() == rows.size(0)
    scores = rows[left] @ (rows if everybody else rows[right]).t()
    return task.canonical.finish(scores, left, right)


def _clusters(rows: Tensor, nodes: Tensor, block: int) -> list[Tensor]:
    """Positions in ``nodes`` by nearest of some pivots, in pieces of ``block``."""
    per_pivot = _CUDA_NODES_PER_PIVOT if nodes.is_cuda else _NODES_PER_PIVOT
    count = max(1, min(_MAX_PIVOTS, nodes.numel() // per_pivot))
    pivots = rows[nodes[:: -(-nodes.numel() // count)]].t()
    nearest = torch.cat([(rows[n] @ pivots).argmax(1) for n in nodes.split(4096)])
    sizes = torch.bincount(nearest).tolist()
    members = nearest.argsort(stable=True).split(sizes)
    return [piece for m in members if m.numel() for piece in m.split(block)]


def _reachable(
    task: Task, rows: Tensor, nodes: Tensor, floor: Tensor, parts: list[Tensor]
) -> Tensor:
    """Which columns may reach the floor of some node, per part: [p, N] bool."""
    canonical = task.canonical
    centres, radii, floors = [], [], []
    for asked in parts:
        members = rows[nodes[asked]]
        centre = members.mean(0)
        centres.append(centre)
        radii.append((members - centre).square().sum(1).max().sqrt())
        own = canonical.half_square[nodes[asked]] if canonical.euclidean else 0
        floors.append((floor[asked] + own).min())
    bounds = canonical.upper_bounds(torch.stack(centres), torch.stack(radii), rows)
    keep = bounds >= torch.stack(floors).unsqueeze(1)
    # Picking most columns costs more than computing them all.
    keep |= 2 * keep.sum(1, keepdim=True) > keep.size(1)
    return keep
