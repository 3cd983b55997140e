"""What the specialised models share: sizes, options, and work done once per graph."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.options import Option, Options
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import InputError

_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """What a model is built for.

    Attributes:
        num_nodes: Only models with a weight per node ask for it.
        gate: Between several graphs; see ``NodeGate``.
    """

    in_channels: int
    hidden_channels: int
    num_classes: int
    num_layers: int
    num_graphs: int = 1
    num_nodes: int | None = None
    gate: str = "none"

    @property
    def out_channels(self) -> int:
        """Number of logits: one for two classes."""
        return 1 if self.num_classes == 2 else self.num_classes


@dataclass(frozen=True)
class Usual:
    """Settings that a preset gives a model."""

    layers: int
    hidden: int = 64
    lr: float = 0.01


class SpecialisedNet(Network):
    """A whole network with a propagation of its own.

    Args:
        sizes: Of input, output and in between.
        dropout: Dropout rate.
        options: What only this model has, all of ``options``.
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

    def __init__(self, sizes: Sizes, dropout: float, options: Options) -> None:
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
