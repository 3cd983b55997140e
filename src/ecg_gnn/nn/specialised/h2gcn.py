"""H2GCN: a node, its neighbours and those two steps away are kept apart."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, normalized_sum
from ecg_gnn.nn.dropout import Dropout
from ecg_gnn.nn.network import NetworkSpec
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.nn.specialised.base import (
    OncePerGraph,
    SpecialisedNet,
    Usual,
    without_self_loops,
)
from ecg_gnn.nn.specialised.two_hop import TwoHop, two_hop


class H2GCN(SpecialisedNet):
    """H2GCN of Zhu et al. (2020).

    ``r0 = ReLU(W0 X)``, ``r_k = [Â1 r_(k-1), Â2 r_(k-1)]`` for k from 1 to K without
    weights or nonlinearity, and a linear map of ``[r0, r1, ..., rK]``. A1 is the graph
    without self-loops, A2 the pairs at distance exactly two, both normalised
    symmetrically; see ``two_hop`` for how A2 is held.

    Several graphs: each has a W0 of its own and propagates on its own; the last map
    reads them all. DropEdge drops edges of A1 and pairs of A2 independently.

    Args:
        spec: ``layers`` is K; the representation is ``2^(K + 1) - 1`` times as wide as
            ``hidden`` for every graph; ``dropout`` is of the representation.
    """

    several_graphs = True
    label_input = True
    usual = Usual(layers=2)

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__(spec)
        hidden, self.num_rounds = spec.hidden, spec.layers
        self.input = nn.ModuleList(
            nn.Linear(spec.in_channels, hidden, bias=False)
            for _ in range(spec.num_graphs)
        )
        width = (2 ** (self.num_rounds + 1) - 1) * hidden * spec.num_graphs
        self.output = nn.Linear(width, spec.out_channels, bias=False)
        self.dropout = Dropout(spec.dropout)
        # The rate is a graph's own: what is kept for a graph may depend on it.
        self._hops: dict[float, OncePerGraph[tuple[Adjacency, TwoHop]]] = {}

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """All rounds of all graphs. ``[N, F]`` to ``[N, G (2^(K+1) - 1) d]``."""
        found = []
        for linear, graph in zip(self.input, graphs, strict=True):
            found += self._rounds(linear(x).relu(), graph)
        states: Tensor = self.dropout(torch.cat(found, dim=1))
        return states

    def _rounds(self, state: Tensor, graph: GraphInput) -> list[Tensor]:
        one, two = self._both_hops(graph)
        near = GraphInput(one, graph.drop_edge)
        rounds = [state]
        for _ in range(self.num_rounds):
            parts = [
                normalized_sum(near.sample(self.training), state),
                two.normalized_sum(state, self.training),
            ]
            state = torch.cat(parts, dim=1)
            rounds.append(state)
        return rounds

    def _both_hops(self, graph: GraphInput) -> tuple[Adjacency, TwoHop]:
        rate = graph.drop_edge

        def make(adjacency: Adjacency) -> tuple[Adjacency, TwoHop]:
            bare = without_self_loops(adjacency)
            return bare, two_hop(bare, rate)

        if rate not in self._hops:
            self._hops[rate] = OncePerGraph(make)
        return self._hops[rate](graph.adjacency)

    def classify(self, states: Tensor) -> Tensor:
        """The last linear map."""
        out: Tensor = self.output(states)
        return out
