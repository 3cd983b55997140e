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

FLOAT = 4  # bytes of a number
_COPIES_OF_WEIGHTS = 6  # themselves, gradient, two moments, the best, a cast
PER_EDGE = 96  # bytes: both orders, weights, scores of heads
_USABLE = 0.7  # of what is free: allocators lose some
_LEAST_WIDTH = 8


@dataclass(frozen=True, kw_only=True)
class Step:
    """The size of a training step."""

    nodes: Sequence[int]
    """Nodes that each layer reads, first to last, and those of the result"""
    edges: int  # edges of all graphs, of all layers where these differ
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

    def bytes(self, network: Network) -> int:
        """About how much memory the step takes, give or take a factor of two."""
        weights = sum(p.numel() for p in network.parameters())
        return self.bytes_at(*widths(network), weights)

    def bytes_at(self, width: int, features: int, weights: int = 0) -> int:
        """The same for a network of which only sizes are known."""
        read = sum(self.nodes[:-1]) * (2 + 2 * self.num_graphs)
        made = sum(self.nodes[1:]) * (3 + 4 * self.num_graphs)
        rows = self.nodes[0] * (features + 3 * width) + (read + made) * width
        numbers = rows + _COPIES_OF_WEIGHTS * weights
        return FLOAT * numbers + PER_EDGE * self.edges


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What to say when a step does not fit."""

    step: Step
    network: Network
    device: torch.device
    batch_size: int | None = None  # seeds of the step; None: it was a full batch

    def sentence(self) -> str:
        """One line: what was needed, what there is, and what to change."""
        needed, free = self.step.bytes(self.network), available_bytes(self.device)
        change = self._change(room_for(needed, free) / needed)
        return (
            f"a step of {self.step.nodes[0]} nodes and {self.step.edges} edges takes "
            f"about {size_of(needed)}, and {size_of(free)} are left on {self.device}: "
            f"{change}"
        )

    def _change(self, share: float) -> str:
        if self.batch_size is None and isinstance(self.network, LayeredNetwork):
            return "train by batches (--batch-size 1024 --fanout 10, or less)"
        size = self.batch_size or 1
        if (smaller := int(size * share)) >= 1:
            return f"lower --batch-size to {smaller} (now {size}) or --fanout"
        return narrower("--hidden", widths(self.network)[0], share)


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


def widths(network: Network) -> tuple[int, int]:
    """The width of a network's states, and how many features it reads."""
    width, features = next(p for p in network.parameters() if p.dim() > 1).shape
    return width, features


def size_of(count: int) -> str:
    """Bytes as people say them."""
    return f"{count / 2**30:.1f} GiB" if count >= 2**28 else f"{count / 2**20:.0f} MiB"
