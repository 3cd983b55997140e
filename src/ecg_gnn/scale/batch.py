"""One batch: the nodes around its seeds, and each layer's part of every graph."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import torch
from torch import Tensor
from torch_geometric.sampler import HeteroSamplerOutput

from ecg_gnn.kernels import Adjacency, is_weighted, sampled_adjacency
from ecg_gnn.nn import GraphInput
from ecg_gnn.scale.sampler import NODE, edge_type


@dataclass(frozen=True, eq=False)
class WholeGraph:
    """What a batch must know of a graph it is a part of.

    Attributes:
        in_degree: ``[N]``
        out_degree: ``[N]``
        edge_weight: In target order; None: all weigh the same. ``[E]``
        drop_edge: See ``GraphInput``.
    """

    in_degree: Tensor
    out_degree: Tensor
    edge_weight: Tensor | None
    drop_edge: float

    @classmethod
    def of(cls, graph: GraphInput) -> "WholeGraph":
        """Of a graph on the host."""
        adjacency = graph.adjacency
        weight = adjacency.edge_weight if is_weighted(adjacency) else None
        return cls(adjacency.in_degree, adjacency.out_degree, weight, graph.drop_edge)


@dataclass(frozen=True, eq=False)
class GraphPart:
    """What a batch has of one graph.

    Attributes:
        edge_index: Between nodes of the batch, in the order of hops. ``[2, e]``
        edges_per_hop: How many each hop added.
        in_degree: Of the batch's nodes in the whole graph. ``[n]``
        out_degree: Likewise. ``[n]``
        edge_weight: None: all weigh the same. ``[e]``
        drop_edge: See ``GraphInput``.
    """

    edge_index: Tensor
    edges_per_hop: tuple[int, ...]
    in_degree: Tensor
    out_degree: Tensor
    edge_weight: Tensor | None
    drop_edge: float

    def to(self, device: torch.device) -> "GraphPart":
        """The same on another device."""
        weight = self.edge_weight
        return replace(
            self,
            edge_index=self.edge_index.to(device),
            in_degree=self.in_degree.to(device),
            out_degree=self.out_degree.to(device),
            edge_weight=None if weight is None else weight.to(device),
        )

    def layers(self, nodes_up_to: Sequence[int]) -> tuple[Adjacency, ...]:
        """The edges of each layer, first to last; see ``Neighbourhood.graphs``."""
        edges_up_to = list(accumulate(self.edges_per_hop))
        return tuple(
            self._layer(nodes_up_to[hop + 1], nodes_up_to[hop], edges_up_to[hop])
            for hop in reversed(range(len(edges_up_to)))
        )

    def _layer(self, num_nodes: int, num_targets: int, num_edges: int) -> Adjacency:
        weight = self.edge_weight
        return sampled_adjacency(
            self.edge_index[:, :num_edges],
            num_targets,
            self.in_degree[:num_nodes],
            self.out_degree[:num_nodes],
            None if weight is None else weight[:num_edges],
        )


@dataclass(frozen=True, eq=False)
class LayerGraph(GraphInput):
    """A graph of which every layer reads another part.

    Attributes:
        layers: The edges of each layer, first to last.
    """

    layers: tuple[Adjacency, ...] = ()

    def at(self, layer: int) -> GraphInput:
        """What one layer reads."""
        return GraphInput(self.layers[layer], self.drop_edge)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Nodes around seeds, in the order of hops, and parts of graphs between them.

    Attributes:
        nodes: In the numbers of the whole graph, seeds first. ``[n]``
        nodes_per_hop: How many are seeds, and how many each hop added.
        parts: Of each graph.
    """

    nodes: Tensor
    nodes_per_hop: tuple[int, ...]
    parts: tuple[GraphPart, ...]

    @classmethod
    def of(
        cls, found: HeteroSamplerOutput, wholes: Sequence[WholeGraph]
    ) -> "Neighbourhood":
        """What a sampler found, and what the whole graphs say about it."""
        nodes = found.node[NODE]
        parts = [
            _part_of(found, nodes, index, whole) for index, whole in enumerate(wholes)
        ]
        per_hop = tuple(map(int, found.num_sampled_nodes[NODE]))
        return cls(nodes, per_hop, tuple(parts))

    @property
    def num_edges(self) -> int:
        """Edges of all graphs together."""
        return sum(part.edge_index.size(1) for part in self.parts)

    def to(self, device: torch.device) -> "Neighbourhood":
        """The same on another device; ``nodes`` stay on the host."""
        return replace(self, parts=tuple(part.to(device) for part in self.parts))

    def graphs(self) -> list[GraphInput]:
        """What a network reads: in each layer, what the next ones still need.

        A network of as many layers as there are hops needs all nodes in its first
        layer, but states only of those one hop nearer, and so on to the seeds.
        """
        up_to = list(accumulate(self.nodes_per_hop))
        layers = [part.layers(up_to) for part in self.parts]
        return [
            LayerGraph(own[0], part.drop_edge, own)
            for part, own in zip(self.parts, layers, strict=True)
        ]


def _part_of(
    found: HeteroSamplerOutput, nodes: Tensor, index: int, whole: WholeGraph
) -> GraphPart:
    name = edge_type(index)
    edge, weight = found.edge[name], whole.edge_weight
    return GraphPart(
        edge_index=torch.stack([found.row[name], found.col[name]]),
        edges_per_hop=tuple(map(int, found.num_sampled_edges[name])),
        in_degree=whole.in_degree[nodes],
        out_degree=whole.out_degree[nodes],
        edge_weight=None if weight is None else weight[edge],
        drop_edge=whole.drop_edge,
    )
