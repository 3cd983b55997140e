"""Neighbours in several graphs over the same nodes, sampled together.

Random numbers are hashes of (key, node, number of the draw). So a node draws the same
neighbours in every batch, worker and process with the same key: a batch that is shared
out over processes draws the same neighbours as the whole batch.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput

from ecg_gnn.kernels import Adjacency
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed

NODE = "node"  # the one type of nodes
SAMPLER_NAME = "own"  # what records call it; some were made with pyg-lib's

Ints = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def edge_type(graph: int) -> tuple[str, str, str]:
    """What PyG calls the edges of one of the graphs."""
    return NODE, f"graph{graph}", NODE


class Drawn(NamedTuple):
    """Edges that were drawn, in target order, and whose they are."""

    place: Ints  # of the node that drew it, among those that drew, [e]
    edge: Ints  # in target order, [e]


class GraphSampler(BaseSampler):  # type: ignore[misc]  # PyG has no usable types here
    """Samples hop by hop in every graph at once, for PyG's ``NodeLoader``.

    In every hop each node of the frontier draws incoming edges of every graph without
    replacement, as many as its fan-out (-1: all); nodes met for the first time are the
    next frontier. After ``evolved_hops`` only the first graph is drawn from. To PyG the
    graphs are edge types between nodes of one type, ``("node", "graph0", "node")`` and
    so on. Seed and step (see ``at``) decide all draws; without a step every call draws
    anew, from torch's generator.
    """

    def __init__(
        self,
        graphs: Sequence[Adjacency],
        fanouts: Sequence[int],
        num_hops: int,
        *,
        evolved_hops: int | None = None,
        seed: int = 0,
    ) -> None:
        check_fanouts(fanouts, len(graphs))
        self.evolved_hops = num_hops if evolved_hops is None else evolved_hops
        self.num_nodes, self.num_hops = graphs[0].num_nodes, num_hops
        self.fanouts, self.seed = tuple(fanouts), seed
        self._step: int | None = None
        self._offsets = [graph.by_target.offsets.numpy() for graph in graphs]
        self._sources = [graph.source.numpy() for graph in graphs]
        self._numbers: NDArray[np.int32] | None = None

    def at(self, step: int) -> "GraphSampler":
        """The same sampler, whose draws are those of one step."""
        other = copy.copy(self)
        other._step = step
        return other

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_numbers": None}  # each process makes its own

    def sample_from_nodes(
        self, index: NodeSamplerInput, **_: Any
    ) -> HeteroSamplerOutput:
        """Sample around seeds, which are all different."""
        seeds = index.node.numpy()
        if self._numbers is None:
            self._numbers = np.full(self.num_nodes, -1, dtype=np.int32)
        expansion = _Expansion(seeds, self._numbers, len(self.fanouts))
        try:
            for hop in range(self.num_hops):
                expansion.add_hop(self._draw(expansion.frontier, hop), self._sources)
        finally:
            expansion.reset_numbers()
        return expansion.output(index)

    def sample_from_edges(self, *_: Any, **__: Any) -> HeteroSamplerOutput:
        """Not there: nodes are classified, not edges."""
        raise NotImplementedError("GraphSampler samples around nodes only")

    def _draw(self, nodes: Ints, hop: int) -> list[Drawn]:
        evolved = nodes if hop < self.evolved_hops else nodes[:0]
        drawing = [nodes] + [evolved] * (len(self.fanouts) - 1)
        keys = self._keys()
        given = zip(self._offsets, drawing, self.fanouts, keys, strict=True)
        return [draw_edges(*each) for each in given]

    def _keys(self) -> list[int]:
        """One per graph: what one graph draws says nothing about another."""
        if self._step is None:
            return torch.randint(2**62, (len(self.fanouts),)).tolist()
        return [
            derive_seed(self.seed, "neighbours", self._step, graph)
            for graph in range(len(self.fanouts))
        ]


class _Expansion:
    """The nodes met so far around some seeds; ``numbers`` of all others are -1."""

    def __init__(
        self, seeds: Ints, numbers: NDArray[np.int32], num_graphs: int
    ) -> None:
        self.frontier, self._numbers = seeds, numbers
        self._nodes, self._num_nodes = [seeds], len(seeds)
        numbers[seeds] = np.arange(len(seeds))
        self._rows: list[list[Ints]] = [[] for _ in range(num_graphs)]
        self._columns: list[list[Ints]] = [[] for _ in range(num_graphs)]
        self._edges: list[list[Ints]] = [[] for _ in range(num_graphs)]

    def add_hop(self, drawn: Sequence[Drawn], sources: Sequence[Ints]) -> None:
        """Follow the edges that the frontier drew."""
        begin = self._num_nodes - len(self.frontier)
        ends = [source[edge] for source, (_, edge) in zip(sources, drawn, strict=True)]
        self._number_new_nodes(np.concatenate(ends))
        for graph, (nodes, (place, edge)) in enumerate(zip(ends, drawn, strict=True)):
            self._rows[graph].append(self._numbers[nodes].astype(np.int64))
            self._columns[graph].append(begin + place)
            self._edges[graph].append(edge)

    def _number_new_nodes(self, nodes: Ints) -> None:
        new_nodes = nodes[self._numbers[nodes] < 0]
        # Each once, without sorting: of equal ones the last to write its place stays.
        places = np.arange(len(new_nodes))
        self._numbers[new_nodes] = places
        self.frontier = new_nodes[self._numbers[new_nodes] == places]
        count = len(self.frontier)
        self._numbers[self.frontier] = np.arange(
            self._num_nodes, self._num_nodes + count
        )
        self._nodes.append(self.frontier)
        self._num_nodes += count

    def reset_numbers(self) -> None:
        """Set the buffer back to -1."""
        for nodes in self._nodes:
            self._numbers[nodes] = -1

    def output(self, index: NodeSamplerInput) -> HeteroSamplerOutput:
        """Everything as PyG expects it."""
        types = [edge_type(graph) for graph in range(len(self._edges))]
        per_hop = [[len(part) for part in parts] for parts in self._edges]
        return HeteroSamplerOutput(
            node={NODE: torch.from_numpy(np.concatenate(self._nodes))},
            row=dict(zip(types, map(_joined, self._rows), strict=True)),
            col=dict(zip(types, map(_joined, self._columns), strict=True)),
            edge=dict(zip(types, map(_joined, self._edges), strict=True)),
            num_sampled_nodes={NODE: [len(nodes) for nodes in self._nodes]},
            num_sampled_edges=dict(zip(types, per_hop, strict=True)),
            metadata=(index.input_id, index.time),
        )


def _joined(parts: Sequence[Ints]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts))


def check_fanouts(fanouts: Sequence[int], num_graphs: int) -> None:
    """Refuse fan-outs that are not -1 or at least one, or not one per graph."""
    if len(fanouts) != num_graphs or any(f != -1 and f < 1 for f in fanouts):
        raise InputError(
            f"'fanout' must be -1 (all neighbours) or at least 1 for each of "
            f"{num_graphs} graphs (got {list(fanouts)})"
        )


def draw_edges(offsets: Ints, nodes: Ints, fanout: int, key: int) -> Drawn:
    """At most ``fanout`` of every node's edges, each set equally likely; -1: all."""
    start = offsets[nodes]
    degree = offsets[nodes + 1] - start
    count = degree if fanout < 0 else np.minimum(degree, fanout)
    first = np.cumsum(count) - count
    place = np.repeat(np.arange(len(nodes)), count)
    edge = start[place] + np.arange(len(place)) - first[place]
    many = np.flatnonzero(degree > count)
    if len(many):
        picked = _distinct(degree[many], fanout, key, nodes[many])
        edge[first[many, None] + np.arange(fanout)] = start[many, None] + picked
    return Drawn(place, edge)


def uniform(nodes: Ints, key: int, draw: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each node, ``[n]``."""
    with np.errstate(over="ignore"):  # products wrap around, as they should
        state = _mix(nodes.astype(np.uint64) * _GOLDEN + np.uint64(key))
        bits = _mix(state + np.uint64(draw + 1) * _GOLDEN)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _distinct(degree: Ints, count: int, key: int, nodes: Ints) -> Ints:
    """``count`` different numbers below each degree, by Floyd's algorithm, ``[n, c]``.

    Its cost does not depend on degrees: a hub is drawn from as fast as any node.
    """
    chosen = np.empty((len(degree), count), dtype=np.int64)
    for draw in range(count):
        top = degree - count + draw
        number = (uniform(nodes, key, draw) * (top + 1)).astype(np.int64)
        repeated = (chosen[:, :draw] == number[:, None]).any(axis=1)
        chosen[:, draw] = np.where(repeated, top, number)
    return chosen


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's hash."""
    x = (x ^ (x >> np.uint64(30))) * _MULTIPLIERS[0]
    x = (x ^ (x >> np.uint64(27))) * _MULTIPLIERS[1]
    return x ^ (x >> np.uint64(31))
