"""What candidates learn from: features, edges, known labels, and a table of them."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.system.machine import cached_property

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rows = Numbers | slice
ALL = slice(None)
Sparse = Any
"""A scipy CSR matrix; its stubs have no common type for arrays and matrices."""

# Columns with fewer entries than this share are kept as sparse columns.
_SPARSE_SHARE = 0.1
_PROJECTED = 64
HOPS = ("hop1", "hop2")
PARTS = (*HOPS, "labels")
"""What a table may have beside a node's own features."""
# Weights of the overall mean among neighbours' labels: few neighbours say little.
_PRIOR_1, _PRIOR_2 = 1.0, 0.1


@dataclass(frozen=True, eq=False)
class Target:
    """What is to be predicted: a class of each node, or a number."""

    values: NDArray[Any]  # classes as whole numbers, or numbers, [N]
    num_classes: int  # 0 for numbers
    known: Bools = field(default_factory=lambda: np.zeros(0, bool))
    """Whose labels may be read, [N]"""

    @property
    def is_number(self) -> bool:
        return self.num_classes == 0

    @property
    def width(self) -> int:
        """Columns of a prediction."""
        return self.num_classes or 1

    def knowing(self, nodes: Numbers | Bools) -> "Target":
        """With the labels of these nodes known, and no others."""
        known = np.zeros(len(self.values), dtype=bool)
        known[nodes] = True
        return replace(self, known=known)

    def padded(self, new: int) -> "Target":
        """With so many more nodes, of which nothing is known."""
        values, known = (np.pad(each, (0, new)) for each in (self.values, self.known))
        return replace(self, values=values, known=known)

    @cached_property
    def columns(self) -> Floats:
        """Labels as input, ``[N, width]``: zero rows where nothing is known."""
        if self.is_number:
            return np.where(self.known, self.values, 0.0).astype(np.float32)[:, None]
        classes = np.where(self.known, self.values, -1)[:, None]
        is_class = classes == np.arange(self.num_classes)
        return np.asarray(is_class, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class GraphInputs:
    """A graph as the candidates read it."""

    x: Floats  # features, [N, F]
    adjacency: Sparse  # one where an edge joins two nodes, either way; no loops
    sparse_columns: Bools  # which columns of x are mostly zeros
    projection: Floats  # turns those into a few dense ones, [S, 64]
    evolved: Tensor | None = None  # edges of a second graph over the same nodes
    one_way: Sparse | None = None
    """One where an edge leads from a column's node to a row's; None if all lead both
    ways."""

    @classmethod
    def of(
        cls, x: Floats, edge_index: Tensor, read: tuple[Bools, Floats] | None = None
    ) -> "GraphInputs":
        """Inputs of a graph; columns are read as before, or it is decided here how."""
        sparse, projection = read or _sparse_columns(x)
        if len(sparse) != x.shape[1] or len(projection) != sparse.sum():
            raise ValueError("the columns are others than those that were fitted")
        adjacency, one_way = _read_edges(edge_index, len(x))
        return cls(x, adjacency, sparse, projection, one_way=one_way)

    def of_graph(self, x: Floats, edge_index: Tensor) -> "GraphInputs":
        """Another graph read in the same way, one with new nodes, say."""
        directed = self.one_way is not None
        adjacency, one_way = _read_edges(edge_index, len(x), directed)
        return replace(self, x=x, adjacency=adjacency, one_way=one_way)

    def with_columns(self, more: Floats) -> "GraphInputs":
        """With further dense columns after the others."""
        sparse = np.append(self.sparse_columns, np.zeros(more.shape[1], dtype=bool))
        return replace(self, x=np.hstack([self.x, more]), sparse_columns=sparse)

    @cached_property
    def ways(self) -> tuple["GraphInputs", ...]:
        """With the edges that arrive alone, and with those that leave alone.

        Nothing where all edges lead both ways.
        """
        if self.one_way is None:
            return ()
        both = self.one_way, self.one_way.T.tocsr()
        return tuple(replace(self, adjacency=each, one_way=None) for each in both)

    @property
    def num_nodes(self) -> int:
        return len(self.x)

    @property
    def size(self) -> int:
        """Nodes plus edges."""
        return self.num_nodes + int(self.adjacency.nnz)

    @cached_property
    def dense(self) -> Floats:
        """The dense columns, and the degree, as networks read them."""
        own, degree = self.x[:, ~self.sparse_columns], np.log1p(self.degrees)
        return np.column_stack([own, degree / 4]).astype(np.float32)

    @cached_property
    def sparse(self) -> Sparse:
        """The sparse columns ``[N, S]``, as networks and linear models read them."""
        return sp.csr_matrix(self.x[:, self.sparse_columns])

    @cached_property
    def columns(self) -> Floats:
        """All features as few dense columns, as trees read them."""
        projected = self.sparse @ self.projection
        return np.hstack([self.x[:, ~self.sparse_columns], projected])

    @cached_property
    def degrees(self) -> Floats:
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.float32)

    @cached_property
    def mean_of_neighbours(self) -> Sparse:
        """The operator that averages over neighbours."""
        return sp.diags(1 / np.maximum(self.degrees, 1)) @ self.adjacency

    @cached_property
    def smoothing(self) -> Sparse:
        """The operator of GCN, over a node and its neighbours."""
        scale = sp.diags(1 / np.sqrt(1 + self.degrees))
        loops = sp.identity(self.num_nodes, dtype=np.float32)
        return (scale @ (self.adjacency + loops) @ scale).tocsr()

    @cached_property
    def means_of_neighbours(self) -> Floats:
        """Means of the neighbours' columns, and degrees: a node's, its neighbours'."""
        degree = np.log1p(self.degrees)
        means = self.mean_of_neighbours @ np.column_stack([self.columns, degree])
        return np.column_stack([means, degree]).astype(np.float32)

    @cached_property
    def means_of_two_hops(self) -> Floats:
        """Means over neighbours of the means over theirs."""
        mean = self.mean_of_neighbours
        return np.asarray(mean @ (mean @ self.columns), dtype=np.float32)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges ``[2, E]``, sources first."""
        pairs = self.adjacency.tocoo()
        return torch.from_numpy(np.stack([pairs.col, pairs.row]).astype(np.int64))


def _read_edges(
    edge_index: Tensor, num_nodes: int, directed: bool | None = None
) -> tuple[Sparse, Sparse | None]:
    """Which nodes edges join; and which way they lead, if some lead one way only."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]].numpy()
    ones, size = np.ones(len(source), dtype=np.float32), (num_nodes, num_nodes)
    arriving: Sparse = sp.coo_matrix((ones, (target, source)), size).tocsr()
    arriving.data[:] = 1  # an edge that is given twice counts once
    if directed is None:
        directed = (arriving != arriving.T).nnz > 0
    if not directed:
        return arriving, None
    return arriving.maximum(arriving.T).tocsr(), arriving


def _sparse_columns(x: Floats) -> tuple[Bools, Floats]:
    """Which are mostly zeros, and the directions in which they differ most."""
    from sklearn.utils.extmath import randomized_svd

    wide = (x != 0).mean(axis=0) < _SPARSE_SHARE
    if wide.sum() <= _PROJECTED:  # dense is as good, and simpler
        return np.zeros_like(wide), np.zeros((0, 0), dtype=np.float32)
    columns = sp.csr_matrix(x[:, wide])
    _, _, directions = randomized_svd(columns, _PROJECTED, n_iter=4, random_state=0)
    return wide, np.asarray(directions.T, dtype=np.float32)


def neighbour_table(
    inputs: GraphInputs, parts: Collection[str], target: Target
) -> Floats:
    """Features of every node, ``[N, F]``.

    The parts are some of ``PARTS``: means over neighbours, means over their neighbours,
    and what is known of the labels among both; a node never sees its own. Where edges
    lead one way only, also over the neighbours they come from, and over those they lead
    to.
    """
    blocks, readings = [inputs.columns], (inputs, *inputs.ways)
    if "hop1" in parts:
        blocks += [each.means_of_neighbours for each in readings]
    if "hop2" in parts:
        blocks.append(inputs.means_of_two_hops)
    if "labels" in parts:
        for each in readings:
            blocks += _labels_nearby(each, target)
    return np.hstack(blocks).astype(np.float32)


def _labels_nearby(inputs: GraphInputs, target: Target) -> list[Floats]:
    """Mean labels among neighbours and among theirs, and how many are known."""
    adjacency, labels = inputs.adjacency, target.columns
    seen = target.known.astype(np.float32)[:, None]
    prior = labels.sum(axis=0) / max(float(seen.sum()), 1.0)
    count = adjacency @ seen
    once = (adjacency @ labels + _PRIOR_1 * prior) / (count + _PRIOR_1)
    # Paths of two edges, each node in the middle weighing one in all. Those that come
    # back to where they began are taken out: they would show a node its own label.
    share = (1 / np.maximum(inputs.degrees, 1))[:, None]
    back = adjacency.multiply(adjacency.T) @ share

    def two_steps(values: Floats) -> Floats:
        paths: Floats = adjacency @ (share * (adjacency @ values)) - back * values
        return paths

    count_2 = np.maximum(two_steps(seen), 0)
    twice = (two_steps(labels) + _PRIOR_2 * prior) / (count_2 + _PRIOR_2)
    return [once, np.log1p(count), twice, np.log1p(count_2)]
