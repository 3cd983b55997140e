"""What the specialised models share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum, normalized_sum
from ecg_gnn.nn.network import Known, Network, NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import InputError

# A x, by how A is normalised.
PROPAGATIONS: dict[str, Callable[[Adjacency, Tensor], Tensor]] = {
    "none": neighbour_sum,
    "symmetric": normalized_sum,
}

_T = TypeVar("_T")


@dataclass(frozen=True)
class Usual:
    """Settings that a preset gives a model."""

    layers: int
    hidden: int = 64
    lr: float = 0.01


class SpecialisedNet(Network):
    """A whole network with a propagation of its own."""

    self_loops: ClassVar[bool] = False  # whether the input graph gets self-loops
    several_graphs: ClassVar[bool] = False
    """Whether evolved graphs can stand beside the input graph."""
    weighted_edges: ClassVar[bool] = False
    """Whether evolved edges may weigh differently."""
    gated: ClassVar[bool] = False  # whether a gate can stand between the graphs
    label_input: ClassVar[bool] = False
    """Whether labels of training nodes may be input beside the features."""
    usual: ClassVar[Usual]  # what presets fill in
    options: ClassVar[dict[str, Option]] = {}  # what model.options may hold

    def __init__(self, spec: NetworkSpec) -> None:
        super().__init__()

    def the_graph(self, graphs: Sequence[GraphInput]) -> Adjacency:
        """The one graph of a model that reads one."""
        if len(graphs) != 1:
            raise InputError(
                f"'graphs' must hold the input graph only for {type(self).__name__} "
                f"(got {len(graphs)})"
            )
        return graphs[0].adjacency


class OncePerGraph(Generic[_T]):
    """What is made of a graph, and perhaps of features, when first asked for.

    It lives as long as the graph. Made outside autograd and autocast; the first pass
    may wait for the device, later ones find everything in place.
    """

    def __init__(self, make: Callable[..., _T]) -> None:
        self._make = make
        self._kept: WeakKeyDictionary[
            Adjacency, tuple[Tensor | None, int | None, _T]
        ] = WeakKeyDictionary()

    def __call__(self, adjacency: Adjacency, x: Tensor | None = None) -> _T:
        """The result for a graph, and for these very features as they are now."""
        version = None if x is None else x._version
        kept = self._kept.get(adjacency)
        if kept is None or kept[0] is not x or kept[1] != version:
            arguments = (adjacency,) if x is None else (adjacency, x)
            device = adjacency.device.type
            with torch.no_grad(), torch.autocast(device, enabled=False):
                kept = (x, version, self._make(*arguments))
            self._kept[adjacency] = kept
        return kept[2]


def with_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same edges, and one from every node to itself."""
    edges = adjacency.edge_index()
    return Adjacency.from_edge_index(edges, adjacency.num_nodes, add_self_loops=True)


def as_logits(states: Tensor) -> Tensor:
    """One column per class as logits: the difference where there are two classes."""
    return states[:, 1:] - states[:, :1] if states.size(1) == 2 else states


def warm_up(
    network: nn.Module,
    logits: Callable[[], Tensor],
    known: Known,
    *,
    steps: int,
    lr: float,
) -> None:
    """Full-batch AdamW on the training labels; the last weights are kept."""
    if not steps:
        return
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.0)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        trained = logits().index_select(0, known.train_index)
        _loss(trained, known.train_y).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _loss(logits: Tensor, y: Tensor) -> Tensor:
    if logits.size(1) == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype))
    return F.cross_entropy(logits, y)
