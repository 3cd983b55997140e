"""How much memory a training step needs, as far as that can be known before."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from ecg_gnn.nn import GraphInput, Network
from ecg_gnn.scale.batch import Neighbourhood

FLOAT = 4
"""Bytes of a number."""
_COPIES_OF_WEIGHTS = 6  # themselves, gradient, two moments, the best, a cast
PER_EDGE = 96
"""Bytes: both orders, weights, scores of heads."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """The size of a training step.

    Attributes:
        nodes: Nodes that each layer reads, first to last, and those of the result.
        edges: Edges of all graphs, of all layers where these differ.
        num_graphs: How many graphs there are.
    """

    nodes: Sequence[int]
    edges: int
    num_graphs: int

    @classmethod
    def of_batch(cls, near: Neighbourhood) -> "Step":
        """The step of a batch."""
        edges = [sum(accumulate(part.edges_per_hop)) for part in near.parts]
        nodes = list(accumulate(near.nodes_per_hop))[::-1]
        return cls(nodes=nodes, edges=sum(edges), num_graphs=len(near.parts))

    @classmethod
    def of_graphs(cls, graphs: Sequence[GraphInput], num_layers: int) -> "Step":
        """The step of a full batch."""
        edges = sum(graph.adjacency.num_edges for graph in graphs)
        nodes = [graphs[0].adjacency.num_nodes] * (num_layers + 1)
        return cls(nodes=nodes, edges=edges, num_graphs=len(graphs))

    @classmethod
    def expected(
        cls,
        graphs: Sequence[GraphInput],
        num_layers: int,
        seeds: int,
        fanouts: Sequence[int],
        evolved_hops: int | None = None,
    ) -> "Step":
        """The step of a batch that nobody has drawn, if no two seeds share a node.

        Until the graph has no more: then all of it is read.
        """
        whole = graphs[0].adjacency.num_nodes
        degrees = [graph.adjacency.num_edges / whole for graph in graphs]
        drawn = [
            degree if fanout < 0 else min(fanout, degree)
            for fanout, degree in zip(fanouts, degrees, strict=True)
        ]
        nodes, edges = [min(whole, seeds)], 0
        for hop in range(num_layers):
            of_all = evolved_hops is None or hop < evolved_hops
            per_node = sum(drawn) if of_all else drawn[0]
            edges += int(nodes[-1] * per_node)
            nodes.append(min(whole, int(nodes[-1] * (1 + per_node))))
        return cls(nodes=nodes[::-1], edges=edges, num_graphs=len(graphs))

    def bytes(self, network: Network) -> int:
        """About how much memory the step takes, give or take a factor of two."""
        matrices = [p for p in network.parameters() if p.dim() > 1]
        width, features = matrices[0].shape
        weights = sum(p.numel() for p in network.parameters())
        return self.bytes_at(width, features, weights)

    def bytes_at(self, width: int, features: int, weights: int = 0) -> int:
        """The same for a network of which only sizes are known."""
        read = sum(self.nodes[:-1]) * (2 + 2 * self.num_graphs)
        made = sum(self.nodes[1:]) * (3 + 4 * self.num_graphs)
        rows = self.nodes[0] * (features + 3 * width) + (read + made) * width
        numbers = rows + _COPIES_OF_WEIGHTS * weights
        return FLOAT * numbers + PER_EDGE * self.edges
