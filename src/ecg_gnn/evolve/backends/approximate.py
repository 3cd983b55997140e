"""k nearest neighbours by an index: candidates from it, order and ties from us."""

import math
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from ecg_gnn.evolve.backends.indexes import index_bytes
from ecg_gnn.evolve.exact.blocks import Block, NearestLists
from ecg_gnn.evolve.exact.canonical import Canonical
from ecg_gnn.evolve.exact.nearest import query_task, search_held
from ecg_gnn.evolve.exact.task import Task
from ecg_gnn.evolve.exact.ties import NOBODY, Boundary, num_candidates
from ecg_gnn.evolve.query import Found, Query, Rows
from ecg_gnn.kernels.distinct_rows import distinct_rows, first_of_group
from ecg_gnn.system.memory import out_of_memory
from ecg_gnn.system.seeds import derive_seed

RECALL = 0.95
"""What is aimed at; the effort grows until some rows reach a little more."""
_MARGIN = 0.02
SAMPLE = 1_000
"""Rows on which the recall is measured, and fewer others to choose the effort by."""
_TUNED_ON = 256
_GROWTH = 1.4
"""Of the effort, until enough is found."""
_TABLE_CELLS = 1 << 22
_TILE, _CUDA_TILE = 1024, 1 << 17
_PAIRS_AT_A_TIME, _CUDA_PAIRS_AT_A_TIME = 1 << 18, 1 << 22


class Index(Protocol):
    """Rows that can be searched with more or less effort; see ``indexes``."""

    effort: int
    max_effort: int
    order: Tensor

    def search(self, rows: Tensor, count: int) -> Tensor:
        """Candidates of some of the rows, -1 for none: [n, count]."""


MakeIndex = Callable[[Canonical, int], Index]
"""Builds an index of rows, from a seed."""


def search_approximately(
    name: str, on_cpu: MakeIndex, on_gpu: MakeIndex | None, query: Query, rows: Rows
) -> Found:
    """Neighbours of all nodes by an index; the seed determines them.

    Args:
        name: What the search is called.
        on_cpu: The index.
        on_gpu: That for rows on a GPU; None: these come to the CPU.
        query: What is asked for.
        rows: Finite embeddings.
    """
    here = on_gpu is not None and query.device.type == "cuda"
    make = on_gpu if on_gpu is not None and here else on_cpu
    try:
        where = query.device if here else torch.device("cpu")
        task = query_task(query, rows.read(0, rows.num_nodes, where))
        found = search_index(task, name, make, query.seed)
        return found._replace(neighbours=found.neighbours.to(query.device))
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
    needed = index_bytes(rows.num_nodes, rows.dim, on_gpu=here)
    raise MemoryError(
        f"an approximate kNN search ({name}) among {rows.num_nodes:,} × "
        f"{rows.dim} embeddings takes about {needed >> 20} MiB: 'knn' exact goes "
        "over them in blocks, or lower the embedding's width to "
        f"{max(1, rows.dim // 2)} (now {rows.dim})"
    )


def search_index(task: Task, name: str, make: MakeIndex, seed: int) -> Found:
    """Neighbours of all nodes, and how many of some nodes' are right."""
    canonical, k = task.canonical, task.k
    search = _Search(task, make, derive_seed(seed, "index"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "recall"))
    order = torch.randperm(canonical.num_nodes, generator=generator)
    order = order.to(canonical.grid.device)
    search.tune(Truth(canonical, order[-_TUNED_ON:], k))
    neighbours = search.all_neighbours()
    measured = order[:SAMPLE].sort().values
    recall = Truth(canonical, measured, k).recall(neighbours[measured])
    if recall < RECALL:
        warnings.warn(
            f"the {name} search finds {recall:.1%} of the nearest neighbours, less "
            f"than {RECALL:.0%}: --knn exact finds all",
            stacklevel=2,
        )
    return Found(neighbours, name, recall)


class Truth:
    """The exact k-th similarity of a few rows."""

    def __init__(self, canonical: Canonical, nodes: Tensor, k: int) -> None:
        self.canonical, self.nodes = canonical, nodes
        lists = _lists(canonical, nodes, k)
        lists.offer(Block(0, canonical))
        self.kth = lists.kth.clone()

    def recall(self, found: Tensor) -> float:
        """The share of ``found`` neighbours [n, k] that are as near as the true ones.

        By similarity: which of several equally similar nodes was found is no matter.
        """
        near = self.canonical.pair_scores(self.nodes, found) >= self.kth.unsqueeze(1)
        return int(near.sum()) / near.numel()


def _lists(canonical: Canonical, nodes: Tensor, k: int) -> NearestLists:
    tile = _CUDA_TILE if nodes.is_cuda else _TILE  # a GPU pays per launch
    return NearestLists(nodes, canonical.take(nodes), k, tile)


# --- Equal rows: an index holds each once, and ties among them are still drawn --------


class Groups:
    """Which nodes have equal rows."""

    def __init__(self, grid: Tensor) -> None:
        self.of_node = distinct_rows(grid)  # [N]
        self.leaders = first_of_group(self.of_node)  # [G]
        self.members = self.of_node.argsort(stable=True)  # [N], by group, ascending
        self.sizes = torch.bincount(self.of_node)  # [G]
        self.first = self.sizes.cumsum(0) - self.sizes  # [G], places in members

    def nodes_of(self, groups: Tensor) -> tuple[Tensor, Tensor]:
        """All members of some groups, and the place of each one's group: [n], [n]."""
        sizes = self.sizes[groups]
        place = torch.arange(groups.numel(), device=groups.device)
        place = place.repeat_interleave(sizes)
        within = torch.arange(place.numel(), device=groups.device)
        within -= (sizes.cumsum(0) - sizes)[place]
        return self.members[self.first[groups][place] + within], place


class Candidates(NamedTuple):
    """For each of some groups, others (and itself) that may be near."""

    own: Tensor  # [g] group
    groups: Tensor  # [g, c] group
    scores: Tensor  # [g, c] exact similarity, minus infinity where there is none

    def kth(self, k: int, sizes: Tensor) -> Tensor:
        """The similarity of the k-th node other than itself; -inf for too few: [g]."""
        counts = sizes[self.groups] - (self.groups == self.own.unsqueeze(1)).long()
        scores, order = self.scores.sort(1, descending=True)
        counts = counts.gather(1, order).masked_fill(scores == -torch.inf, 0)
        enough = counts.cumsum(1) >= k
        place = enough.long().argmax(1, keepdim=True)
        kth = scores.gather(1, place).squeeze(1)
        return kth.masked_fill(~enough[:, -1], -torch.inf)

    def take(self, which: Tensor) -> "Candidates":
        """Those of some of the groups."""
        return Candidates(self.own[which], self.groups[which], self.scores[which])


def choose_nodes(
    groups: Groups, candidates: Candidates, kth: Tensor, k: int, key: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Nodes, and the neighbours of each, as the tie rule has them: [n], [n, k].

    Args:
        groups: Of all nodes.
        candidates: Of some of the groups, with at least k nodes each.
        kth: The k-th similarity among each one's candidates. ``[g]``
        k: Neighbours per node.
        key: Of the random choice among ties.
    """
    # Itself, too, which may be less similar to itself than others are (dot products).
    near = candidates.groups == candidates.own.unsqueeze(1)
    near &= candidates.scores > -torch.inf
    near |= candidates.scores >= kth.unsqueeze(1)
    widths = (groups.sizes[candidates.groups] * near).sum(1)
    for some in _tables(widths):
        part = candidates.take(some)
        row, place = near[some].nonzero(as_tuple=True)
        nodes, of_pair = groups.nodes_of(part.groups[row, place])
        row, place = row[of_pair], place[of_pair]
        order = (row * groups.of_node.numel() + nodes).argsort()
        row, place, nodes = row[order], place[order], nodes[order]
        start = widths[some].cumsum(0) - widths[some]
        column = torch.arange(row.numel(), device=row.device) - start[row]
        shape = (some.numel(), int(widths[some].max()))
        ids = nodes.new_full(shape, NOBODY)
        ids[row, column] = nodes
        scores = kth.new_full(shape, -torch.inf)
        scores[row, column] = part.scores[row, place]
        asked, line = groups.nodes_of(part.own)
        own = torch.searchsorted(
            row * groups.of_node.numel() + nodes,
            line * groups.of_node.numel() + asked,
        )
        boundary = Boundary.at(scores, kth[some], ids)
        yield asked, boundary.choose(k, key, asked, line, own - start[line])


def _tables(widths: Tensor) -> Iterator[Tensor]:
    """Rows of similar widths, as many at a time as a table may have cells for."""
    order = widths.argsort(stable=True)
    while order.numel():
        place = torch.arange(1, order.numel() + 1, device=order.device)
        cells = place * widths[order]
        count = max(1, int((cells <= _TABLE_CELLS).sum()))
        yield order[:count]
        order = order[count:]


# --- The search -----------------------------------------------------------------------


class _Search:
    def __init__(self, task: Task, make: MakeIndex, seed: int) -> None:
        self.task, self.k = task, task.k
        self.groups = Groups(task.canonical.grid)
        self.rows: Canonical = task.canonical.take(self.groups.leaders)
        self.index = make(self.rows, seed)

    def tune(self, truth: Truth) -> None:
        """Raise the effort until enough of the true neighbours are candidates."""
        own, place = torch.unique(self.groups.of_node[truth.nodes], return_inverse=True)
        while self._recall(self._candidates(own), place, truth) < RECALL + _MARGIN:
            if self.index.effort >= self.index.max_effort:
                return
            more = math.ceil(_GROWTH * self.index.effort)
            self.index.effort = min(more, self.index.max_effort)

    def _recall(self, candidates: Candidates, place: Tensor, truth: Truth) -> float:
        near = candidates.scores[place] >= truth.kth.unsqueeze(1)
        sizes = self.groups.sizes[candidates.groups[place]]
        is_own = candidates.groups[place] == candidates.own[place].unsqueeze(1)
        hits = ((sizes - is_own.long()) * near).sum(1).clamp(max=self.k)
        return float(hits.double().mean()) / self.k

    def all_neighbours(self) -> Tensor:
        """Neighbours of all nodes [N, k]; where there are too few candidates, exact."""
        num_nodes = self.task.canonical.num_nodes
        found = self.index.order.new_empty((num_nodes, self.k))
        pairs = _CUDA_PAIRS_AT_A_TIME if found.is_cuda else _PAIRS_AT_A_TIME
        size = max(1, pairs // num_candidates(self.k))
        lacking = []
        for own in self.index.order.split(size):
            candidates = self._candidates(own)
            kth = candidates.kth(self.k, self.groups.sizes)
            enough = kth > -torch.inf
            lacking.append(own[~enough])
            some = candidates.take(enough.nonzero().squeeze(1))
            for nodes, neighbours in choose_nodes(
                self.groups, some, kth[enough], self.k, self.task.key
            ):
                found[nodes] = neighbours
                self.task.progress(nodes.numel())
        nodes, _ = self.groups.nodes_of(torch.cat(lacking))
        for some_nodes in nodes.split(size) if nodes.numel() else ():
            lists = _lists(self.task.canonical, some_nodes, self.k)
            found[some_nodes] = search_held(lists, self.task.key, self.task.canonical)
            self.task.progress(some_nodes.numel())
        return found

    def _candidates(self, own: Tensor) -> Candidates:
        count = min(num_candidates(self.k) + 1, self.rows.num_nodes)
        found = self.index.search(own, count)
        groups = torch.cat([found, own.unsqueeze(1)], 1).sort(1).values
        absent = groups < 0
        absent[:, 1:] |= groups[:, 1:] == groups[:, :-1]  # itself, a second time
        groups = groups.where(~absent, own.unsqueeze(1))
        scores = self.rows.pair_scores(own, groups)
        return Candidates(own, groups, scores.masked_fill_(absent, -torch.inf))
