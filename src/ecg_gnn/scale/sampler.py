"""Neighbours in several graphs over the same nodes, sampled together.

Random numbers are hashes of (key, node, number of the draw). So a node draws the same
neighbours in every batch and every worker process with the same key.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.kernels import SampledAdjacency
from ecg_gnn.kernels.hashing import GOLDEN, mix, shift_right
from ecg_gnn.nn import GraphInput
from ecg_gnn.system.seeds import derive_seed

SAMPLER_NAME = "own"  # what records call it; some were made with pyg-lib's

Ints = NDArray[np.int64]


class Neighbourhood(NamedTuple):
    """Nodes around seeds and edges between them, both in the order of hops."""

    nodes: Tensor  # in the numbers of the whole graph, seeds first, [n]
    nodes_per_hop: list[int]  # how many are seeds, and how many each hop added
    edges: list[Tensor]
    """Of every graph: where sources and targets stand in ``nodes``, and which of the
    graph's edges, in target order, these are. ``[3, e]``"""
    edges_per_hop: list[list[int]]  # of every graph


class GraphSampler:
    """Samples hop by hop in every graph at once.

    In every hop each node of the frontier draws incoming edges of every graph without
    replacement, as many as its fan-out (-1: all); nodes met for the first time are the
    next frontier. After ``evolved_hops`` only the first graph is drawn from. Seed and
    step decide all draws.
    """

    def __init__(
        self,
        graphs: Sequence[GraphInput],
        fanouts: Sequence[int],
        num_hops: int,
        *,
        evolved_hops: int | None = None,
        seed: int = 0,
    ) -> None:
        self.graphs, self.fanouts, self.seed = graphs, tuple(fanouts), seed
        self.num_hops = num_hops
        self.evolved_hops = num_hops if evolved_hops is None else evolved_hops
        self._numbers = np.full(graphs[0].adjacency.num_nodes, -1, dtype=np.int32)

    def around(self, seeds: Tensor, step: int = 0) -> Neighbourhood:
        """Sample around seeds, which are all different."""
        numbers, begin, hops = self._numbers, 0, [seeds.numpy()]
        found: list[list[Ints]] = [[] for _ in self.graphs]
        numbers[hops[0]] = np.arange(len(seeds))
        try:
            for hop in range(self.num_hops):
                frontier = hops[-1]
                drawn = self._draw(frontier, hop, step)
                pairs = zip(self.graphs, drawn, strict=True)
                ends = [g.adjacency.source.numpy()[edge] for g, (_, edge) in pairs]
                met = begin + len(frontier)
                hops.append(_number_new_nodes(np.concatenate(ends), numbers, met))
                for parts, nodes, (place, edge) in zip(found, ends, drawn, strict=True):
                    parts.append(np.stack([numbers[nodes], begin + place, edge]))
                begin = met
        finally:
            for nodes in hops:
                numbers[nodes] = -1
        return Neighbourhood(
            torch.from_numpy(np.concatenate(hops)),
            list(map(len, hops)),
            [torch.from_numpy(np.concatenate(parts, axis=1)) for parts in found],
            [[part.shape[1] for part in parts] for parts in found],
        )

    def _draw(self, nodes: Ints, hop: int, step: int) -> list[tuple[Ints, Ints]]:
        evolved, drawn = nodes if hop < self.evolved_hops else nodes[:0], []
        for index, (graph, fanout) in enumerate(
            zip(self.graphs, self.fanouts, strict=True)
        ):
            # A key per graph: what one graph draws says nothing about another.
            key = derive_seed(self.seed, "neighbours", step, index)
            offsets = graph.adjacency.by_target.offsets.numpy()
            drawn.append(draw_edges(offsets, evolved if index else nodes, fanout, key))
        return drawn

    def inputs_from(
        self, near: Neighbourhood, device: torch.device
    ) -> list[GraphInput]:
        """What a network reads: in each layer, what the next ones still need.

        A network of as many layers as there are hops needs all nodes in its first
        layer, but states only of those one hop nearer, and so on to the seeds.
        """
        up_to, inputs = list(accumulate(near.nodes_per_hop)), []
        given = zip(self.graphs, near.edges, near.edges_per_hop, strict=True)
        for graph, edges, edges_per_hop in given:
            whole, layers = graph.adjacency, list[SampledAdjacency]()
            in_degree = whole.in_degree[near.nodes].to(device)
            out_degree = whole.out_degree[near.nodes].to(device)
            weight: Any = whole.edge_weight
            weight = None if weight is None else weight[edges[2]].to(device)
            ends = edges[:2].to(device)
            for hop, count in enumerate(accumulate(edges_per_hop)):
                part = SampledAdjacency.from_edge_index(
                    ends[:, :count],
                    up_to[hop + 1],
                    edge_weight=None if weight is None else weight[:count],
                    num_targets=up_to[hop],
                    whole_in=in_degree[: up_to[hop + 1]],
                    whole_out=out_degree[: up_to[hop + 1]],
                )
                layers.insert(0, part)
            inputs.append(GraphInput(layers[0], graph.drop_edge, tuple(layers)))
        return inputs


def _number_new_nodes(nodes: Ints, numbers: NDArray[np.int32], begin: int) -> Ints:
    """Those without a number, each once; they get the numbers from ``begin`` on."""
    new_nodes = nodes[numbers[nodes] < 0]
    # Each once, without sorting: of equal ones the last to write its place stays.
    places = np.arange(len(new_nodes))
    numbers[new_nodes] = places
    frontier: Ints = new_nodes[numbers[new_nodes] == places]
    numbers[frontier] = np.arange(begin, begin + len(frontier))
    return frontier


def draw_edges(offsets: Ints, nodes: Ints, fanout: int, key: int) -> tuple[Ints, Ints]:
    """At most ``fanout`` of every node's edges, each set equally likely; -1: all.

    The place among ``nodes`` of who drew an edge, and the edge, in target order.
    """
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
    return place, edge


def uniform(nodes: Ints, key: int, draw: int = 0) -> NDArray[np.float64]:
    """A number in [0, 1) for each node, ``[n]``."""
    state = mix((torch.from_numpy(nodes) - 1) * GOLDEN + key)
    bits = shift_right(mix(state + torch.tensor(draw) * GOLDEN), 11)
    return bits.double().numpy() * 2.0**-53


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
