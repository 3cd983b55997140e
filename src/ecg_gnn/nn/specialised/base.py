"""What the specialised models share."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum, normalized_sum
from ecg_gnn.nn.benchmark_net import Dropout
from ecg_gnn.nn.network import GraphInput, Known, Network, NetworkSpec, Option, Traits

# A x, by how A is normalised.
PROPAGATIONS: dict[str, Callable[[Adjacency, Tensor], Tensor]] = {
    "none": neighbour_sum,
    "symmetric": normalized_sum,
}

NORMALISATION = {
    "normalisation": Option("symmetric", "of what propagates", choices=(*PROPAGATIONS,))
}

_T = TypeVar("_T")


def usually(layers: int = 2, hidden: int = 64, lr: float = 0.01) -> dict[str, Any]:
    """Settings that a preset gives a model, by their dotted names."""
    return {"model.layers": layers, "model.hidden": hidden, "train.lr": lr}


class SpecialisedNet(Traits, Network):
    """A whole network with a propagation of its own; it says what else it takes."""

    several_graphs = weighted_edges = gated = some_layers = False
    one_hop = label_input = False
    usual = usually()  # what presets fill in

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()
        self.chosen, self.dropout = spec.options, Dropout(spec.dropout)

    def the_graph(self, graphs: Sequence[GraphInput]) -> Adjacency:
        """The one graph of a model that reads one."""
        (graph,) = graphs
        return graph.adjacency


class ColumnPerClass(SpecialisedNet):
    """A network whose representation has a column per class, which are the logits."""

    def classify(self, states: Tensor) -> Tensor:
        """One logit for two classes: the difference."""
        return states[:, 1:] - states[:, :1] if states.size(1) == 2 else states


class OncePerGraph(Generic[_T]):
    """What is made of a graph, and perhaps of features, when first asked for.

    It lives as long as the graph, which it must not hold itself. Made outside autograd
    and autocast; the first pass may wait for the device, later ones find everything in
    place.
    """

    def __init__(self, make: Callable[..., _T]) -> None:
        self._make = make
        # Of a graph: the features, their version, and what was made.
        self._kept: WeakKeyDictionary[Adjacency, Any] = WeakKeyDictionary()

    def __call__(self, adjacency: Adjacency, x: Tensor | None = None) -> _T:
        """The result for a graph, and for these very features as they are now."""
        version = None if x is None else x._version
        seen, seen_version, made = self._kept.get(adjacency, (None, -1, None))
        if seen is not x or seen_version != version:
            arguments = (adjacency,) if x is None else (adjacency, x)
            device = adjacency.device.type
            with torch.no_grad(), torch.autocast(device, enabled=False):
                made = self._make(*arguments)
            self._kept[adjacency] = x, version, made
        return made  # type: ignore[no-any-return]


def with_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same edges, and one from every node to itself."""
    edges = adjacency.edge_index()
    return Adjacency.from_edge_index(edges, adjacency.num_nodes, add_self_loops=True)


def without_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same edges but those from a node to itself: a graph of its own."""
    edges = adjacency.edge_index()
    others = edges[:, edges[0] != edges[1]]
    if others.size(1) == adjacency.num_edges:
        return replace(adjacency)
    return Adjacency.from_edge_index(others, adjacency.num_nodes)


def warm_up(
    network: nn.Module,
    logits: Callable[[], Tensor],
    known: Known,
    *,
    steps: int,
    lr: float,
) -> torch.optim.AdamW:
    """Full-batch AdamW on the training labels; the last weights are kept."""
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.0)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        out, y = logits().index_select(0, known.train_index), known.train_y
        if out.size(1) == 1:
            loss = F.binary_cross_entropy_with_logits(out[:, 0], y.to(out.dtype))
        else:
            loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return optimizer
