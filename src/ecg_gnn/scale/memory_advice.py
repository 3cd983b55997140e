"""How much memory a training step needs, and what to lower where it runs out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch

from ecg_gnn.nn import GraphInput, LayeredNetwork, Network
from ecg_gnn.scale.sampler import Neighbourhood
from ecg_gnn.system.checks import size_text
from ecg_gnn.system.machine import available_bytes

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
        edges = [sum(accumulate(per_hop)) for per_hop in near.edges_per_hop]
        nodes = list(accumulate(near.nodes_per_hop))[::-1]
        return cls(nodes=nodes, edges=sum(edges), num_graphs=len(near.edges))

    @classmethod
    def of_graphs(cls, graphs: Sequence[GraphInput], num_layers: int) -> "Step":
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

    def fits(self, width: int, features: int, device: torch.device) -> bool:
        """Whether there is likely to be memory for it."""
        needed = self.bytes_at(width, features)
        return needed <= _USABLE * available_bytes(device)


def step_advice(step: Step, network: Network, batch_size: int | None = None) -> str:
    """What to say when a step does not fit; it was a full batch if no size is given."""
    what = f"a step of {step.nodes[0]} nodes and {step.edges} edges"
    device = next(network.parameters()).device
    said, share = shortage(what, step.bytes(network), device)
    layered = isinstance(network, LayeredNetwork) and network.one_hop
    if batch_size is None and layered:
        return f"{said}train by batches (--batch-size 1024 --fanout 10, or less)"
    size = batch_size or 1
    if (smaller := int(size * share)) >= 1:
        return f"{said}lower --batch-size to {smaller} (now {size}) or --fanout"
    return said + narrower("--hidden", widths(network)[0], share)


def shortage(what: str, needed: int, device: torch.device) -> tuple[str, float]:
    """What was needed and what there is, and the share that the next try may take."""
    free = available_bytes(device)
    # Where the estimate sees room and was wrong, half is the next thing to try.
    share = min(_USABLE * free, needed / 2) / needed
    said = f"{what} takes about {size_text(needed)}, and {size_text(free)} are left"
    return f"{said} on {device}: ", share


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
