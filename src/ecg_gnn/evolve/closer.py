"""A closer look: the fast search once more, inside clusters.

A fast score's error grows with the square of the rows' spread about their mean, so
that one search over all rows cannot tell neighbours in a tight cluster apart; a search
over that cluster alone can. It is the whole truth for those of its nodes whose k-th
similarity no row outside the cluster reaches.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ecg_gnn.evolve.task import Task, num_candidates

_NODES_PER_PIVOT, _MOST_PIVOTS = 64, 512
_BOUND_BYTES = 256 << 20
_ALIKE = 1.25
"""Clusters share a search over the largest of them, if it is larger by no more."""
_LEAST_SHARE = 0.25
"""Of a search's rows that must be asked for: exact similarities cost less otherwise."""

Propose = Callable[[Task], tuple[Tensor, Tensor, Tensor]]


def search_closer(
    task: Task, nodes: Tensor, floor: Tensor, propose: Propose
) -> tuple[Tensor, Tensor]:
    """Neighbours of ``nodes`` [n] whose k-th similarity is at least ``floor`` [n].

    Args:
        task: The whole search.
        nodes: Those that it left open.
        floor: Of each.
        propose: The search for a part of the task: neighbours and which are proven.

    Returns:
        Neighbours [n, k], and which of them are proven right [n].
    """
    found = nodes.new_empty((nodes.numel(), task.k))
    sure = torch.zeros(nodes.numel(), dtype=torch.bool, device=nodes.device)
    for asked, ids in _clusters(task, nodes, floor):
        if not _worthwhile(task, asked.numel(), ids.numel()):
            continue
        part_found, part_sure, _ = propose(task.part(ids))
        own = torch.searchsorted(ids, nodes[asked])
        found[asked], sure[asked] = part_found[own], part_sure[own]
        task.progress(int(sure[asked].sum()))
    return found, sure


def _worthwhile(task: Task, asked: int, size: int) -> bool:
    smaller = 2 * size <= task.canonical.num_nodes
    enough = size > num_candidates(task.k) + 1  # what every search needs
    return smaller and enough and asked >= _LEAST_SHARE * size


def _clusters(
    task: Task, nodes: Tensor, floor: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Positions in ``nodes``, and all rows that may reach the floor of one of them."""
    canonical = task.canonical
    rows = canonical.rows(torch.arange(canonical.num_nodes, device=nodes.device))
    members = rows[nodes]
    most = min(_MOST_PIVOTS, _BOUND_BYTES // (rows.element_size() * rows.size(0)))
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
