"""How much memory a training step needs, and what to lower where it runs out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import torch

from ecg_gnn.nn import GraphInput, LayeredNetwork, Network
from ecg_gnn.scale.neighbourhood import Neighbourhood
from ecg_gnn.system.memory import available_bytes, out_of_memory

FLOAT = 4
"""Bytes of a number."""
_COPIES_OF_WEIGHTS = 6  # themselves, gradient, two moments, the best, a cast
PER_EDGE = 96
"""Bytes: both orders, weights, scores of heads."""
_USABLE = 0.7  # of what is free: allocators lose some
_FANOUTS = (10, 5, 2)
_LEAST_WIDTH = 8
_SIZES = tuple(2**power for power in range(12, 3, -1))


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


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to say when a step does not fit.

    Attributes:
        step: Its size.
        network: What it trains.
        graphs: The whole graphs.
        device: Where it computes.
        batch_size: Seeds of the step; None: it was a full batch.
        fanouts: Neighbours that were drawn in each graph.
    """

    step: Step
    network: Network
    graphs: Sequence[GraphInput]
    device: torch.device
    batch_size: int | None = None
    fanouts: Sequence[int] = ()

    def sentence(self) -> str:
        """One line: what was needed, what there is, and what would fit."""
        needed, free = self.step.bytes(self.network), available_bytes(self.device)
        room = room_for(needed, free)
        change = self._lower
        if self.batch_size is None:
            layered = isinstance(self.network, LayeredNetwork)
            change = self._start_batches if layered else self._narrow
        return (
            f"a step of {self.step.nodes[0]} nodes and {self.step.edges} edges takes "
            f"about {size_of(needed)}, and {size_of(free)} are left on {self.device}: "
            f"{change(room)}"
        )

    def _start_batches(self, room: float) -> str:
        for fanout in _FANOUTS:
            for size in _SIZES:
                if self._expected(size, [fanout] * len(self.graphs)) <= room:
                    return f"train by batches (--batch-size {size} --fanout {fanout})"
        return (
            f"train by batches (--batch-size {_SIZES[-1]} --fanout {_FANOUTS[-1]}), "
            f"and {self._narrow(room)}"
        )

    def _narrow(self, room: float) -> str:
        share = room / self.step.bytes(self.network)
        return narrower("--hidden", network_width(self.network), share)

    def _lower(self, room: float) -> str:
        size, fanouts = self.batch_size, list(self.fanouts)
        assert size is not None
        # Seeds share neighbours: how much that saved is taken to stay as it was.
        share = self.step.bytes(self.network) / self._expected(size, fanouts)
        smaller = [
            f"--batch-size to {other} (now {size})"
            for other in _smaller(size)
            if share * self._expected(other, fanouts) <= room
        ]
        fewer = [
            f"--fanout to {_listed(other)} (now {_listed(fanouts)})"
            for other in _fewer(fanouts)
            if share * self._expected(size, other) <= room
        ]
        ways = [*smaller[:1], *fewer[:1]]
        return f"lower {' or '.join(ways)}" if ways else self._narrow(room)

    def _expected(self, size: int, fanouts: Sequence[int]) -> int:
        num_layers = len(self.step.nodes) - 1
        assert isinstance(self.network, LayeredNetwork)  # no others read batches
        hops = num_layers - self.network.first_evolved
        step = Step.expected(self.graphs, num_layers, size, fanouts, hops)
        return step.bytes(self.network)


class Sentence(Protocol):
    """What there is to say where memory runs out; it is asked only then."""

    def sentence(self) -> str:
        """One line."""


@contextmanager
def explaining(advice: Sentence) -> Iterator[None]:
    """Say what to lower where memory runs out inside the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        kind = torch.OutOfMemoryError if on_gpu else MemoryError
        raise kind(advice.sentence()) from error


def _smaller(size: int) -> list[int]:
    """Powers of two below a number, falling."""
    return [2**power for power in reversed(range((size - 1).bit_length()))]


def _fewer(fanouts: Sequence[int]) -> Iterator[list[int]]:
    """Ever smaller fan-outs, down to one; all neighbours become ten at first."""
    now = [fanout if fanout > 0 else 2 * _FANOUTS[0] for fanout in fanouts]
    while max(now) > 1:
        now = [max(1, fanout // 2) for fanout in now]
        yield now


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def room_for(needed: float, free: int) -> float:
    """What the next try may take, where so much did not fit."""
    # Where the estimate sees room and was wrong, half is the next thing to try.
    return min(_USABLE * free, needed / 2)


def narrower(option: str, width: int, share: float) -> str:
    """What to do about a width of which only a share fits."""
    smaller = max(_LEAST_WIDTH, int(width * share) // 8 * 8)
    if smaller >= width:
        return f"free memory ({option} is {width} already)"
    return f"lower {option} to {smaller} (now {width})"


def network_width(network: Network) -> int:
    """The width of a network's states."""
    return next(p for p in network.parameters() if p.dim() > 1).size(0)


def size_of(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"
