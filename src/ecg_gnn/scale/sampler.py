"""Neighbours in several graphs over the same nodes, sampled together.

Random numbers are hashes of (key, node, number of the draw). So a node draws the same
neighbours in every batch, worker and process with the same key: a batch that is shared
out over processes draws the same neighbours as the whole batch.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput

from ecg_gnn.kernels import Adjacency
from ecg_gnn.kernels.hashing import GOLDEN, mix, shift_right
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.seeds import derive_seed

NODE = "node"  # the one type of nodes
SAMPLER_NAME = "own"  # what records call it; some were made with pyg-lib's

Ints = NDArray[np.int64]


def edge_type(graph: int) -> tuple[str, str, str]:
    """What PyG calls the edges of one of the graphs."""
    return NODE, f"graph{graph}", NODE


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
        if len(fanouts) != len(graphs) or any(f != -1 and f < 1 for f in fanouts):
            raise InputError(
                f"'fanout' must be -1 (all neighbours) or at least 1 for each of "
                f"{len(graphs)} graphs (got {list(fanouts)})"
            )
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
        if self._numbers is None:
            self._numbers = np.full(self.num_nodes, -1, dtype=np.int32)
        numbers, seeds, begin = self._numbers, index.node.numpy(), 0
        numbers[seeds] = np.arange(len(seeds))
        hops, found = [seeds], [list[tuple[Ints, ...]]() for _ in self.fanouts]
        try:
            for hop in range(self.num_hops):
                frontier = hops[-1]
                drawn = self._draw(frontier, hop)
                pairs = zip(self._sources, drawn, strict=True)
                ends = [source[edge] for source, (_, edge) in pairs]
                met = begin + len(frontier)
                hops.append(_number_new_nodes(np.concatenate(ends), numbers, met))
                for parts, nodes, (place, edge) in zip(found, ends, drawn, strict=True):
                    row = numbers[nodes].astype(np.int64)
                    parts.append((row, begin + place, edge))
                begin = met
        finally:
            for nodes in hops:
                numbers[nodes] = -1
        row, col, picked, num_edges = (dict[Any, Any]() for _ in range(4))
        for graph, parts in enumerate(found):
            whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
            name = edge_type(graph)
            row[name], col[name], picked[name] = map(torch.from_numpy, whole)
            num_edges[name] = [len(ends) for ends, *_ in parts]
        return HeteroSamplerOutput(
            node={NODE: torch.from_numpy(np.concatenate(hops))},
            row=row,
            col=col,
            edge=picked,
            num_sampled_nodes={NODE: [len(nodes) for nodes in hops]},
            num_sampled_edges=num_edges,
            metadata=(index.input_id, index.time),
        )

    def sample_from_edges(self, *_: Any, **__: Any) -> HeteroSamplerOutput:
        raise NotImplementedError("GraphSampler samples around nodes only")

    def _draw(self, nodes: Ints, hop: int) -> list[tuple[Ints, Ints]]:
        num_graphs, step = len(self.fanouts), self._step
        # A key per graph: what one graph draws says nothing about another.
        if step is None:
            keys = torch.randint(2**62, (num_graphs,)).tolist()
        else:
            about = self.seed, "neighbours", step
            keys = [derive_seed(*about, graph) for graph in range(num_graphs)]
        evolved = nodes if hop < self.evolved_hops else nodes[:0]
        drawing = [nodes] + [evolved] * (num_graphs - 1)
        given = zip(self._offsets, drawing, self.fanouts, keys, strict=True)
        return [draw_edges(*each) for each in given]


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
