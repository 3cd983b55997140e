"""The nodes around seeds: their parts of every graph, and what is read of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.sampler import NodeSamplerInput

from ecg_gnn.kernels import Adjacency, sampled_adjacency
from ecg_gnn.nn import GraphInput
from ecg_gnn.reading import MappedFile
from ecg_gnn.scale.sampler import NODE, GraphSampler, edge_type, uniform
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import Task
from ecg_gnn.train.training_task import moved


@dataclass(frozen=True, eq=False)
class GraphFacts:
    """What a batch must know of the graph it is a part of."""

    in_degree: Tensor  # in the whole graph: of all its nodes, or of the batch's
    out_degree: Tensor  # likewise
    edge_weight: Tensor | None  # in target order; None: all weigh the same, [E]
    drop_edge: float

    @classmethod
    def of(cls, graph: GraphInput) -> "GraphFacts":
        """Of a graph on the host."""
        whole = graph.adjacency
        degrees = whole.in_degree, whole.out_degree
        return cls(*degrees, whole.edge_weight, graph.drop_edge)

    def at(self, nodes: Tensor | slice, edges: Tensor | slice) -> "GraphFacts":
        """Of some nodes and edges alone."""
        return replace(
            self,
            in_degree=self.in_degree[nodes],
            out_degree=self.out_degree[nodes],
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
        )

    def to(self, device: torch.device) -> "GraphFacts":
        """The same on another device."""
        return moved(self, device)


@dataclass(frozen=True, eq=False)
class GraphPart:
    """What a batch has of one graph: edges in the order of hops."""

    edge_index: Tensor  # between nodes of the batch, [2, e]
    edges_per_hop: tuple[int, ...]
    facts: GraphFacts  # of the batch's nodes and edges

    def to(self, device: torch.device) -> "GraphPart":
        """The same on another device."""
        return moved(self, device)

    def layers(self, nodes_up_to: Sequence[int]) -> tuple[Adjacency, ...]:
        """The edges of each layer, first to last; see ``Neighbourhood.graphs``."""
        edges_up_to = list(accumulate(self.edges_per_hop))
        return tuple(
            self._layer(nodes_up_to[hop + 1], nodes_up_to[hop], edges_up_to[hop])
            for hop in reversed(range(len(edges_up_to)))
        )

    def _layer(self, num_nodes: int, num_targets: int, num_edges: int) -> Adjacency:
        facts = self.facts.at(slice(num_nodes), slice(num_edges))
        degrees, edges = (facts.in_degree, facts.out_degree), slice(num_edges)
        return sampled_adjacency(
            self.edge_index[:, edges], num_targets, *degrees, facts.edge_weight
        )


@dataclass(frozen=True, eq=False)
class LayerGraph(GraphInput):
    """A graph of which every layer reads another part, first to last."""

    layers: tuple[Adjacency, ...] = ()

    def at(self, layer: int) -> GraphInput:
        """What one layer reads."""
        return GraphInput(self.layers[layer], self.drop_edge)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Nodes around seeds, in the order of hops, and parts of graphs between them."""

    nodes: Tensor  # in the numbers of the whole graph, seeds first, [n]
    nodes_per_hop: tuple[int, ...]  # how many are seeds, and how many each hop added
    parts: tuple[GraphPart, ...]

    @classmethod
    def around(
        cls, seeds: Tensor, sampler: GraphSampler, graphs: Sequence[GraphFacts]
    ) -> "Neighbourhood":
        """What a sampler draws, and what the whole graphs say about it."""
        asked = NodeSamplerInput(input_id=None, node=seeds, input_type=NODE)
        drawn = sampler.sample_from_nodes(asked)
        nodes, parts = drawn.node[NODE], []
        for index, facts in enumerate(graphs):
            name = edge_type(index)
            edges = torch.stack([drawn.row[name], drawn.col[name]])
            per_hop = tuple(map(int, drawn.num_sampled_edges[name]))
            parts.append(GraphPart(edges, per_hop, facts.at(nodes, drawn.edge[name])))
        per_hop = tuple(map(int, drawn.num_sampled_nodes[NODE]))
        return cls(nodes, per_hop, tuple(parts))

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
            LayerGraph(own[0], part.facts.drop_edge, own)
            for part, own in zip(self.parts, layers, strict=True)
        ]


class NodeInputs:
    """Rows of the features, perhaps from a file, and labels where they are input."""

    def __init__(self, task: Task, file: MappedFile | None = None) -> None:
        self._x: Tensor | None = task.x
        self._file, self._labels = file, task.labels
        self._trains = torch.zeros(task.x.size(0), dtype=torch.bool)
        self._trains[task.train_index] = True
        self.y = task.y

    def __getstate__(self) -> dict[str, Any]:
        """A worker process opens the file itself: its contents are sent to nobody."""
        return self.__dict__ | ({} if self._file is None else {"_x": None})

    def for_training(
        self, nodes: Tensor, num_seeds: int, seed: int, step: int
    ) -> tuple[Tensor, Tensor | None]:
        """The rows, and how much each seed counts: one that gives its label does not.

        Whether a node gives its label is decided by (seed, step, node) alone.
        """
        if self._labels is None:
            return self._rows(nodes), None
        drawn = uniform(nodes.numpy(), derive_seed(seed, "labels", step))
        gives = torch.from_numpy(drawn < self._labels.rate) & self._trains[nodes]
        learned = (~gives[:num_seeds]).to(torch.float32)
        return self._with_labels(nodes, gives), learned

    def for_evaluation(self, nodes: Tensor) -> Tensor:
        """The rows; every training node gives its label, if any does."""
        if self._labels is None:
            return self._rows(nodes)
        return self._with_labels(nodes, self._trains[nodes])

    def _with_labels(self, nodes: Tensor, gives: Tensor) -> Tensor:
        assert self._labels is not None
        classes = torch.arange(self._labels.num_classes)
        shown = (self.y[nodes, None] == classes) & gives[:, None]
        rows = self._rows(nodes)
        return torch.cat([rows, shown.to(rows.dtype)], dim=1)

    def _rows(self, nodes: Tensor) -> Tensor:
        if self._file is not None:
            self._file.check()
        if self._x is None:
            assert self._file is not None
            self._x = torch.from_numpy(np.asarray(self._file.array()))
        return self._x[nodes]
