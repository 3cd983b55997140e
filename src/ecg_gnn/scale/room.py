"""How much memory a training step needs, and what to lower where it is too much."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate

import torch

from ecg_gnn.evolve.memory import available_bytes, out_of_memory
from ecg_gnn.nn import GraphInput, LayeredNetwork, Network
from ecg_gnn.scale.batch import Neighbourhood

_FLOAT = 4
_COPIES_OF_WEIGHTS = 6  # themselves, gradient, two moments, the best, a cast
_PER_EDGE = 96  # both orders, weights, scores of heads
_USABLE = 0.7  # of what is free: allocators lose some
_USUAL_FANOUT = 10


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

    @property
    def num_layers(self) -> int:
        """How many layers there are."""
        return len(self.nodes) - 1

    def bytes(self, network: Network) -> int:
        """About how much memory the step takes, give or take a factor of two."""
        matrices = [p for p in network.parameters() if p.dim() > 1]
        width, features = matrices[0].shape
        read = sum(self.nodes[:-1]) * (2 + 2 * self.num_graphs)
        made = sum(self.nodes[1:]) * (3 + 4 * self.num_graphs)
        rows = self.nodes[0] * (features + 3 * width) + (read + made) * width
        weights = sum(p.numel() for p in network.parameters())
        numbers = rows + _COPIES_OF_WEIGHTS * weights
        return _FLOAT * numbers + _PER_EDGE * self.edges


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to say when a step does not fit.

    Attributes:
        step: Its size.
        network: What it trains.
        device: Where.
        batch_size: Seeds of the step; None: it was a full batch.
        fanouts: Neighbours that were drawn in each graph.
    """

    step: Step
    network: Network
    device: torch.device
    batch_size: int | None = None
    fanouts: Sequence[int] = ()

    def sentence(self) -> str:
        """One line: what was needed, what there is, and what would fit."""
        needed, free = self.step.bytes(self.network), available_bytes(self.device)
        # Where the estimate sees room and was wrong, half is the next thing to try.
        share = min(0.5, _USABLE * free / needed)
        change = self._lower
        if self.batch_size is None:
            layered = isinstance(self.network, LayeredNetwork)
            change = self._start_batches if layered else self._narrow
        return (
            f"a step of {self.step.nodes[0]} nodes and {self.step.edges} edges takes "
            f"about {_size(needed)}, and {_size(free)} are left on {self.device}: "
            f"{change(share)}"
        )

    def _start_batches(self, share: float) -> str:
        per_seed = (1 + _USUAL_FANOUT * self.step.num_graphs) ** self.step.num_layers
        fitting = _power_of_two(share * self.step.nodes[0] / per_seed)
        return f"train by batches (--batch-size {fitting} --fanout {_USUAL_FANOUT})"

    def _narrow(self, share: float) -> str:
        width = next(p for p in self.network.parameters() if p.dim() > 1).size(0)
        return f"lower --hidden to {max(8, 8 * int(width * share / 8))} (now {width})"

    def _lower(self, share: float) -> str:
        assert self.batch_size is not None
        smaller = _power_of_two(self.batch_size * share)
        # Neighbourhoods grow with the fan-out once per layer.
        fewer = share ** (1 / self.step.num_layers)
        fanouts = [_USUAL_FANOUT if f < 0 else int(f * fewer) for f in self.fanouts]
        return (
            f"lower --batch-size to {smaller} (now {self.batch_size}) or --fanout to "
            f"{_listed([max(1, f) for f in fanouts])} (now {_listed(self.fanouts)})"
        )


@contextmanager
def explaining(advice: Advice) -> Iterator[None]:
    """Say what to lower where memory runs out inside the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not out_of_memory(error):
            raise
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        kind = torch.OutOfMemoryError if on_gpu else MemoryError
        raise kind(advice.sentence()) from error


def _listed(values: Sequence[int]) -> str:
    return ",".join(map(str, values))


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"


def _power_of_two(value: float) -> int:
    """The next one below, at least one."""
    return 1 << max(0, math.floor(math.log2(max(1.0, value))))
