"""Exact k nearest neighbours: a fast search that knows when it is certain.

All ways lead to the same set, the one that `canonical` and `ties` define:

1. where few rows are distinct, their exact similarities with all nodes;
2. a fast search, compiled or on a GPU, which proves most rows right;
3. for the rest the same again inside clusters, where scores are more precise;
4. for what is left, and where there is no fast search, `blocks`.
"""

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ecg_gnn.evolve.exact import compiled, gpu
from ecg_gnn.evolve.exact.blocks import (
    Block,
    Layout,
    NearestLists,
    search_blocks,
    search_nodes,
)
from ecg_gnn.evolve.exact.canonical import Canonical, canonicalise
from ecg_gnn.evolve.exact.task import Proposal, Task
from ecg_gnn.evolve.exact.ties import choose_by_groups, num_candidates
from ecg_gnn.evolve.query import Found, Query, Rows, count_rows
from ecg_gnn.kernels.distinct_rows import distinct_rows, first_of_group
from ecg_gnn.system.memory import fits_in_memory, memory_budget, out_of_memory

_SCORE_BYTES, _CUDA_SCORE_BYTES = 128 << 20, 1 << 30
_BYTES_PER_SCORE = 32  # the float64, two masks, and the places of the ties
_MAX_GROUPS = 1024  # distinct rows at a time
_MAX_TILE, _MAX_CUDA_TILE = 2048, 8192
_ROWS_PER_REPORT = 1 << 15

# Of clusters that get a search of their own.
_NODES_PER_PIVOT, _MAX_PIVOTS = 64, 512
_BOUND_BYTES = 256 << 20
_ALIKE = 1.25
"""Clusters share a search over the largest of them, if it is larger by no more."""
_MIN_SHARE = 0.25
"""Of a search's rows that must be asked for: exact similarities cost less otherwise."""


def search_exact(query: Query, rows: Rows) -> Found:
    """The neighbours of all nodes, with all rows in memory if they fit."""
    budget = memory_budget(query.memory, query.device)
    on_gpu = query.device.type == "cuda"
    if query.block_size is not None or fits_in_memory(
        rows.num_nodes, rows.dim, budget, on_gpu=on_gpu
    ):
        neighbours = _search_in_memory(query, rows)
        if neighbours is not None:
            return Found(neighbours)
        budget //= 4
    layout = Layout.fit(rows, query.k, budget, on_gpu=on_gpu)
    finished, tell = query.finished(rows), query.counter(rows.num_nodes)
    missing = finished.missing()
    tell(rows.num_nodes - count_rows(missing))
    for start, found in search_blocks(rows, query, layout, missing):
        finished.keep(start, found)
        tell(len(found))
    return Found(finished.collect().to(query.device))


def _search_in_memory(query: Query, rows: Rows) -> Tensor | None:
    """All rows at once; None if memory runs out."""
    try:
        z = rows.read(0, rows.num_nodes, query.device)
        return nearest(query_task(query, z))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    warnings.warn(
        f"not enough memory for a kNN search among {rows.num_nodes:,} × {rows.dim} "
        "embeddings at once: it goes on in blocks",
        stacklevel=2,
    )
    return None


def query_task(query: Query, z: Tensor) -> Task:
    """A search among all rows ``z``, which are in memory."""
    rows = canonicalise(z, query.metric)
    return Task(rows, query.k, query.key, query.block_size, query.counter(len(z)))


def nearest(task: Task) -> Tensor:
    """The ``k`` most similar other nodes of every node, ascending ids: [N, k]."""
    num_nodes = task.canonical.num_nodes
    groups = distinct_rows(task.canonical.grid)
    nodes = torch.arange(num_nodes, device=groups.device)
    # Few distinct rows: their exact similarities cost less than one fast search.
    few = 4 * int(groups.max() + 1) <= num_nodes
    if few or num_candidates(task.k) >= num_nodes - 1:
        return search_groups(task, groups, nodes)
    propose = _fast_search(task)
    if propose is None:
        return search_left(task, nodes)
    found, sure, floor = propose(task)
    left = (~sure).nonzero().squeeze(1)
    if left.numel():
        num_distinct = torch.unique(groups[left]).numel()
        if 4 * num_distinct < left.numel():
            found[left] = search_groups(task, groups, left)
            return found
        found[left], sure[left] = search_clusters(task, left, floor[left])
        left = (~sure).nonzero().squeeze(1)
    if left.numel():
        found[left] = search_left(task, left, floor[left])
    return found


def _fast_search(task: Task) -> Callable[[Task], Proposal] | None:
    if gpu.usable(task.canonical.grid, task.k):
        from ecg_gnn.evolve.exact.gpu.tiled import search_tiled

        return search_tiled
    return compiled.search_compiled if compiled.usable(task) else None


def search_groups(task: Task, groups: Tensor, nodes: Tensor) -> Tensor:
    """Neighbours of ``nodes`` [n], computed once per distinct row: [n, k]."""
    canonical, everybody = task.canonical, first_of_group(groups)
    wanted, group = torch.unique(groups[nodes], return_inverse=True)
    leaders = everybody[wanted]

    def scores(some: slice) -> Tensor:
        return canonical.scores(leaders[some], everybody)[:, groups]

    size = task.block_size or _rows_of_scores(canonical)
    return choose_by_groups(
        task.k, task.key, nodes, group, leaders, scores, size, task.progress
    )


def _rows_of_scores(canonical: Canonical) -> int:
    """How many rows of exact scores with all nodes to hold at a time."""
    budget = _CUDA_SCORE_BYTES if canonical.grid.is_cuda else _SCORE_BYTES
    fitting = budget // (_BYTES_PER_SCORE * canonical.num_nodes)
    return max(1, min(_MAX_GROUPS, fitting))


def search_left(task: Task, nodes: Tensor, floor: Tensor | None = None) -> Tensor:
    """Neighbours of ``nodes`` [n] whose k-th similarity is at least ``floor`` [n]."""
    canonical = task.canonical
    most = _MAX_CUDA_TILE if nodes.is_cuda else _MAX_TILE
    tile, found = min(task.block_size or most, most), []
    for start in range(0, nodes.numel(), _ROWS_PER_REPORT):
        part = slice(start, start + _ROWS_PER_REPORT)
        above = None if floor is None else floor[part]
        rows = canonical.take(nodes[part])
        lists = NearestLists(nodes[part], rows, task.k, tile, above)
        found.append(search_held(lists, task.key, canonical))
        task.progress(len(found[-1]))
    return torch.cat(found)


def search_held(lists: NearestLists, key: int, canonical: Canonical) -> Tensor:
    """``search_nodes`` among rows that are all in memory."""
    whole = [Block(0, canonical)]
    return search_nodes(lists, key, lambda: whole, _rows_of_scores(canonical))


# --- Inside clusters ------------------------------------------------------------------
# A fast score's error grows with the square of the rows' spread about their mean, so
# that one search over all rows cannot tell neighbours in a tight cluster apart; a
# search over that cluster alone can. It is the whole truth for those of its nodes whose
# k-th similarity no row outside the cluster reaches.


def search_clusters(task: Task, nodes: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """Neighbours of ``nodes`` [n] whose k-th similarity is at least ``floor`` [n].

    Returns:
        Neighbours [n, k], and which of them are proven right [n].
    """
    found = nodes.new_empty((nodes.numel(), task.k))
    sure = torch.zeros(nodes.numel(), dtype=torch.bool, device=nodes.device)
    for asked, ids in _clusters(task, nodes, floor):
        if not _worthwhile(task, asked.numel(), ids.numel()):
            continue
        part = task.part(ids)
        propose = _fast_search(part)
        if propose is not None:
            proposal = propose(part)
            own = torch.searchsorted(ids, nodes[asked])
            found[asked], sure[asked] = proposal.found[own], proposal.sure[own]
            task.progress(int(sure[asked].sum()))
    return found, sure


def _worthwhile(task: Task, asked: int, size: int) -> bool:
    smaller = 10 * size <= 9 * task.canonical.num_nodes
    enough = size > num_candidates(task.k) + 1  # what every search needs
    return smaller and enough and asked >= _MIN_SHARE * size


def _clusters(
    task: Task, nodes: Tensor, floor: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Positions in ``nodes``, and all rows that may reach the floor of one of them."""
    canonical = task.canonical
    rows = canonical.rows(torch.arange(canonical.num_nodes, device=nodes.device))
    members = rows[nodes]
    most = min(_MAX_PIVOTS, _BOUND_BYTES // (rows.element_size() * rows.size(0)))
    count = max(1, min(most, nodes.numel() // _NODES_PER_PIVOT))
    pivots = members[:: -(-nodes.numel() // count)].t()
    nearest = torch.cat([(m @ pivots).argmax(1) for m in members.split(4096)])
    label = torch.unique(nearest, return_inverse=True)[1]
    size = torch.bincount(label)
    centres = members.new_zeros((size.numel(), rows.size(1)))
    centres.index_add_(0, label, members).div_(size.unsqueeze(1))
    distance = torch.linalg.vector_norm(members - centres[label], dim=1)
    if canonical.euclidean:
        floor = floor + canonical.half_square[nodes]
    radii = members.new_zeros(size.numel()).scatter_reduce_(0, label, distance, "amax")
    floors = torch.full_like(radii, torch.inf).scatter_reduce_(0, label, floor, "amin")
    keep = canonical.upper_bounds(centres, radii, rows) >= floors.unsqueeze(1)
    del rows, members
    keep[label, nodes] = True
    leader = _leaders(keep)[label]
    for one in torch.unique(leader).tolist():
        yield (leader == one).nonzero()[:, 0], keep[one].nonzero()[:, 0]


def _leaders(keep: Tensor) -> Tensor:
    """For each set of rows [p, N], a set that contains it and is hardly larger: [p]."""
    inside = keep.float()
    size = inside.sum(1)
    contained = inside @ (1 - inside).t() == 0  # counts, exact below 2^24
    alike = contained & (size <= _ALIKE * size.unsqueeze(1))
    return torch.where(alike, size, -1).argmax(1)
