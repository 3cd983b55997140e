"""Neighbours at distance exactly two, found exactly and in pieces.

Counting paths, ``A (A x)``, and taking something off does not do: a pair with several
common neighbours would weigh several times. The pattern itself is needed. It is found
for a few columns at a time, two products with the graph each, so nothing of size N x N
is held on the way. What is kept depends on how full it is:

* few pairs: a graph like any other, 40 bytes a pair;
* many (a third of all on tolokers, 45 million pairs, 1.8 GB as a graph): the normalised
  matrix, 4 bytes for every pair there could be (0.55 GB there), which a matrix product
  reads an order of magnitude faster than a sum over a third of all nodes. Only up to
  ``_MAX_MATRIX_NODES`` nodes: 4 GB.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.kernels import Adjacency, neighbour_sum, normalized_sum
from ecg_gnn.nn.parallel import GraphInput

_COLUMNS = 512
_FULL = 1 / 10
_MAX_MATRIX_NODES = 32_000


@dataclass(frozen=True, eq=False)
class TwoHop:
    """The pairs at distance two, as a graph or as a normalised matrix."""

    graph: GraphInput | None
    matrix: Tensor | None = None

    def normalized_sum(self, x: Tensor, training: bool) -> Tensor:
        """``sum_v x_v / sqrt(d_in(u) d_out(v))`` over the nodes v two steps from u."""
        if self.graph is not None:
            return normalized_sum(self.graph.sample(training), x)
        assert self.matrix is not None
        return self.matrix.to(x.dtype) @ x


def two_hop_pairs(adjacency: Adjacency) -> Tensor:
    """Edges v -> u where v -> w -> u but neither v -> u nor v = u, ``[2, E]``.

    Args:
        adjacency: Without self-loops.
    """
    nodes = torch.arange(adjacency.num_nodes, device=adjacency.device)
    found = []
    for columns in nodes.split(_COLUMNS):
        start = torch.zeros(len(nodes), len(columns), device=nodes.device)
        start[columns, columns - columns[0]] = 1
        once = neighbour_sum(adjacency, start)  # [N, columns]: v -> u
        twice = neighbour_sum(adjacency, (once > 0).float())
        at_two = (twice > 0) & (once == 0) & (start == 0)
        target, column = at_two.nonzero(as_tuple=True)
        found.append(torch.stack([columns[column], target]))
    return torch.cat(found, dim=1) if found else nodes.new_zeros(2, 0)


def two_hop(adjacency: Adjacency, drop_edge: float) -> TwoHop:
    """What propagates over two steps; DropEdge treats it as a graph of its own.

    Args:
        adjacency: Without self-loops.
        drop_edge: Share of pairs dropped in training.
    """
    pairs, nodes = two_hop_pairs(adjacency), adjacency.num_nodes
    full = pairs.size(1) > _FULL * nodes**2 and nodes <= _MAX_MATRIX_NODES
    if drop_edge > 0 or not full:
        graph = Adjacency.from_edge_index(pairs, nodes)
        return TwoHop(GraphInput(graph, drop_edge))
    source, target = pairs
    matrix = torch.zeros(nodes, nodes, device=pairs.device)
    matrix[target, source] = 1
    matrix *= matrix.sum(1, keepdim=True).clamp_min(1).rsqrt()
    matrix *= torch.bincount(source, minlength=nodes).clamp_min(1).rsqrt()
    return TwoHop(None, matrix)
