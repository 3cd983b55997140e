"""H2GCN: a node, its neighbours and those two steps away are kept apart.

Counting paths, ``A (A x)``, would weigh a pair with several common neighbours several
times, so the pattern at distance two is found exactly. It is kept as a graph or, if
many pairs are in it, as a matrix, which a product reads an order of
magnitude faster.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, normalized_sum
from ecg_gnn.nn.network import GraphInput, NetworkSpec, Option
from ecg_gnn.nn.specialised import base

_FULL = 1 / 10
_MAX_MATRIX_NODES = 32_000


TwoHop = Callable[[Tensor, bool], Tensor]
"""``sum_v x_v / sqrt(d_in(u) d_out(v))`` over the nodes v two steps from u, of x and of
whether it is training."""


def two_hop_pairs(adjacency: Adjacency) -> Tensor:
    """Edges v -> u where v -> w -> u but neither v -> u nor v = u, ``[2, E]``."""
    source, target = adjacency.edge_index().cpu().numpy()
    there, size = np.ones(len(source), dtype=np.bool_), adjacency.num_nodes
    once = csr_array((there, (target, source)), shape=(size, size))
    target, source = (once @ once > once).nonzero()
    pairs = torch.from_numpy(np.stack([source, target])[:, source != target])
    return pairs.long().to(adjacency.device)


def two_hop(adjacency: Adjacency, drop_edge: float) -> TwoHop:
    """What propagates over two steps; DropEdge treats it as a graph of its own."""
    pairs, nodes = two_hop_pairs(adjacency), adjacency.num_nodes
    full = pairs.size(1) > _FULL * nodes**2 and nodes <= _MAX_MATRIX_NODES
    if drop_edge > 0 or not full:
        graph = GraphInput(Adjacency.from_edge_index(pairs, nodes), drop_edge)
        return lambda x, training: normalized_sum(graph.sample(training), x)
    source, target = pairs
    matrix = torch.zeros(nodes, nodes, device=pairs.device)
    matrix[target, source] = 1
    into, out = (
        torch.bincount(ends, minlength=nodes).clamp_min(1).double().rsqrt()[:, None]
        for ends in (target, source)
    )
    return lambda x, _training: (
        into.to(x.dtype) * (matrix.to(x.dtype) @ (out.to(x.dtype) * x))
    )


def both_hops(adjacency: Adjacency, drop_edge: float) -> tuple[Adjacency, TwoHop]:
    """What propagates over one step and over two, without self-loops."""
    bare = base.without_self_loops(adjacency)
    return bare, two_hop(bare, drop_edge)


class H2GCN(base.SpecialisedNet):
    """H2GCN of Zhu et al. (2020), as released.

    Every row of X is divided by its sum. ``r0 = ReLU(W0 X)``,
    ``r_k = [Â1 r_(k-1), Â2 r_(k-1)]`` for k from 1 to K without weights or
    nonlinearity, and a linear map of ``[r0, r1, ..., rK]``. A1 is the graph
    without self-loops, A2 the pairs at distance exactly two, both normalised
    symmetrically; see ``two_hop`` for how A2 is held.

    Several graphs: each has a W0 of its own and propagates on its own; the last map
    reads them all. DropEdge drops edges of A1 and pairs of A2 independently.

    ``layers`` is K; the representation is ``2^(K + 1) - 1`` times as wide as ``hidden``
    for every graph; ``dropout`` is of the representation.
    """

    several_graphs = label_input = True
    options: ClassVar[dict[str, Option]] = {
        "normalise_rows": Option(
            True, "features over their row's sum, which for signed ones can be small"
        )
    }

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, self.num_rounds = spec.hidden, spec.layers
        features, graphs = spec.in_channels, range(spec.num_graphs)
        self.input = nn.ModuleList(
            nn.Linear(features, hidden, bias=False) for _ in graphs
        )
        width = (2 ** (self.num_rounds + 1) - 1) * hidden * spec.num_graphs
        self.output = nn.Linear(width, spec.out_channels, bias=False)
        # The rate is a graph's own: what is kept for a graph may depend on it.
        self._hops: dict[float, base.OncePerGraph[tuple[Adjacency, TwoHop]]] = {}

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        if self.chosen["normalise_rows"]:  # zeros where the sum is zero
            total = x.sum(1, keepdim=True)
            x = torch.where(total == 0, 0, x / total)
        rounds = []
        for linear, graph in zip(self.input, graphs, strict=True):
            rounds += self._rounds(linear(x).relu(), graph)
        states: Tensor = self.dropout(torch.cat(rounds, dim=1))
        return states

    def _rounds(self, state: Tensor, graph: GraphInput) -> list[Tensor]:
        rate = graph.drop_edge
        if rate not in self._hops:
            self._hops[rate] = base.OncePerGraph(partial(both_hops, drop_edge=rate))
        one, two = self._hops[rate](graph.adjacency)
        near = GraphInput(one, rate)
        rounds = [state]
        for _ in range(self.num_rounds):
            of_one = normalized_sum(near.sample(self.training), state)
            of_two = two(state, self.training)
            state = torch.cat([of_one, of_two], dim=1)
            rounds.append(state)
        return rounds
