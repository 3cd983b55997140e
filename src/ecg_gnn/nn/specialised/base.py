"""What the specialised models share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import Adjacency, neighbour_sum
from ecg_gnn.nn.network import Known, Network, NetworkSpec, Option
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import InputError

_T = TypeVar("_T")


@dataclass(frozen=True)
class Usual:
    """Settings that a preset gives a model."""

    layers: int
    hidden: int = 64
    lr: float = 0.01


class SpecialisedNet(Network):
    """A whole network with a propagation of its own.

    Args:
        spec: With all of the model's ``options``.
    """

    self_loops: ClassVar[bool] = False
    """Whether the input graph gets self-loops."""
    several_graphs: ClassVar[bool] = False
    """Whether evolved graphs can stand beside the input graph."""
    weighted_edges: ClassVar[bool] = False
    """Whether evolved edges may weigh differently."""
    gated: ClassVar[bool] = False
    """Whether a gate can stand between the graphs."""
    label_input: ClassVar[bool] = False
    """Whether labels of training nodes may be input beside the features."""
    usual: ClassVar[Usual]
    """What presets fill in."""
    options: ClassVar[dict[str, Option]] = {}
    """What ``model.options`` may hold."""

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

    Args:
        make: From a graph, and the features where some are given.
    """

    def __init__(self, make: Callable[..., _T]) -> None:
        self._make = make
        self._kept: WeakKeyDictionary[
            Adjacency, tuple[Tensor | None, int | None, _T]
        ] = WeakKeyDictionary()

    def __call__(self, adjacency: Adjacency, x: Tensor | None = None) -> _T:
        """The result for a graph, and for these very features as they are now."""
        version = None if x is None else x._version
        found = self._kept.get(adjacency)
        if found is None or found[0] is not x or found[1] != version:
            arguments = (adjacency,) if x is None else (adjacency, x)
            with (
                torch.no_grad(),
                torch.autocast(adjacency.device.type, enabled=False),
            ):
                found = (x, version, self._make(*arguments))
            self._kept[adjacency] = found
        return found[2]


def without_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same edges but those from a node to itself."""
    edges = adjacency.edge_index()
    others = edges[:, edges[0] != edges[1]]
    if others.size(1) == adjacency.num_edges:
        return adjacency
    return Adjacency.from_edge_index(others, adjacency.num_nodes)


def with_self_loops(adjacency: Adjacency) -> Adjacency:
    """The same edges, and one from every node to itself."""
    edges = adjacency.edge_index()
    return Adjacency.from_edge_index(edges, adjacency.num_nodes, add_self_loops=True)


def as_logits(states: Tensor) -> Tensor:
    """One column per class as logits: the difference where there are two classes."""
    return states[:, 1:] - states[:, :1] if states.size(1) == 2 else states


class AdjacencyLinear(nn.Module):
    """``A W + b``: the sum of a learned row for each neighbour.

    Args:
        num_nodes: Number of nodes N, one row of W each.
        out_channels: Width d.
        bias: Whether b is learned.
    """

    def __init__(
        self, num_nodes: int | None, out_channels: int, *, bias: bool = True
    ) -> None:
        super().__init__()
        if num_nodes is None:
            raise InputError(
                "'num_nodes' must be given for a model that learns a row "
                "for every node (got None)"
            )
        bound = num_nodes**-0.5
        self.weight = nn.Parameter(
            torch.empty(num_nodes, out_channels).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, adjacency: Adjacency) -> Tensor:
        """One row per node, ``[N, d]``."""
        if adjacency.num_nodes != self.weight.size(0):
            raise InputError(
                f"'graphs' must have the {self.weight.size(0)} nodes that the model "
                f"was built for (got {adjacency.num_nodes})"
            )
        total = neighbour_sum(adjacency, self.weight)
        return total if self.bias is None else total + self.bias


def warm_up(
    network: nn.Module,
    logits: Callable[[], Tensor],
    known: Known,
    *,
    steps: int,
    lr: float,
) -> None:
    """Full-batch AdamW on the training labels; what the logits do not use stays.

    There are no validation labels here, so the last weights are kept.

    Args:
        network: Whose weights are trained.
        logits: Of every node, one column per class, or one for two classes.
        known: The training labels.
        steps: How many steps.
        lr: Learning rate.
    """
    if not steps:
        return
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.0)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        found = logits().index_select(0, known.train_index)
        _loss(found, known.train_y).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _loss(logits: Tensor, y: Tensor) -> Tensor:
    if logits.size(1) == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype))
    return F.cross_entropy(logits, y)
