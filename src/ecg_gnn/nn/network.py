"""What training needs of any network, and what a network is built from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.config.setting import parse
from ecg_gnn.kernels import Adjacency, joint_linear
from ecg_gnn.system.checks import check_choice, check_in_range


@dataclass(frozen=True, eq=False)
class GraphInput:
    """One graph that a model reads, and the share of edges that each layer drops."""

    adjacency: Adjacency
    drop_edge: float = 0.0
    layers: tuple[Adjacency, ...] = ()
    """Parts of a graph, of which every layer reads another; empty: all read all."""

    def sample(self, training: bool) -> Adjacency:
        """The edges for one layer of one step."""
        if training and self.drop_edge > 0:
            return self.adjacency.drop_edges(self.drop_edge)
        return self.adjacency

    def at(self, layer: int) -> "GraphInput":
        """What one layer reads."""
        return GraphInput(self.layers[layer], self.drop_edge) if self.layers else self

    def to(self, device: torch.device | str) -> "GraphInput":
        layers = tuple(each.to(device) for each in self.layers)
        return GraphInput(self.adjacency.to(device), self.drop_edge, layers)


class ParallelModules(nn.Module):
    """One module per graph, jointly projected: the paper's equations 6 to 8.

    ``h = W h_INP + U h_ECG`` is one linear map of the concatenation, and goes on to
    any number of graphs, after a ``NodeGate`` where one is asked for. One graph alone
    needs no projection: that is the baseline.
    """

    def __init__(
        self,
        channels: int,
        num_graphs: int,
        make_module: Callable[[], nn.Module],
        gate: str = "none",
    ) -> None:
        super().__init__()
        self.branches = nn.ModuleList(make_module() for _ in range(num_graphs))
        several = num_graphs > 1
        self.project = nn.Linear(num_graphs * channels, channels) if several else None
        self.gate = make_gate(gate, channels, num_graphs)

    def forward(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        states: list[Tensor] = [
            branch(x, graph.sample(self.training))
            for branch, graph in zip(self.branches, graphs, strict=True)
        ]
        if self.project is None:
            return states[0]
        if self.gate is not None:
            states = self.gate(graphs[0].adjacency.at_targets(x), states)
        return joint_linear(states, self.project)


GATES = ("none", "node")


class NodeGate(nn.Module):
    """How much a node takes of each graph: ``G softmax(V x_u + b)_g h_g(u)``.

    V and b start at zero, hence every share at one: at first the gate changes nothing,
    and a network starts as it would without one.
    """

    def __init__(self, in_channels: int, num_graphs: int) -> None:
        super().__init__()
        # No nn.Linear: its random start would move the weights drawn after it.
        self.weight = nn.Parameter(torch.zeros(num_graphs, in_channels))
        self.bias = nn.Parameter(torch.zeros(num_graphs))

    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.zeros_(parameter)

    def shares(self, x: Tensor) -> Tensor:
        """What every node takes of each graph, ``[N, G]``; they sum to G."""
        scores = F.linear(x, self.weight, self.bias)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return scores.size(1) * scores.softmax(dim=1)

    def forward(self, x: Tensor, states: Sequence[Tensor]) -> list[Tensor]:
        pairs = zip(states, self.shares(x).split(1, dim=1), strict=True)
        return [state * share.to(state.dtype) for state, share in pairs]


def make_gate(gate: str, in_channels: int, num_graphs: int) -> NodeGate | None:
    """The gate of a name; None where there is none, or one graph alone."""
    wanted = gate == "node" and num_graphs > 1
    return NodeGate(in_channels, num_graphs) if wanted else None


Value = bool | int | float | str
Options = Mapping[str, Any]  # every option of a model by its name, checked


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """Everything that ``build_network`` reads; settings were checked where declared.

    Examples:
        >>> from ecg_gnn.nn import build_network
        >>> spec = NetworkSpec(model="sage", in_channels=7, hidden=16, num_classes=3)
        >>> type(build_network(spec)).__name__
        'BenchmarkNet'
    """

    model: str  # message-passing module, or a specialised network; see selectable
    in_channels: int  # number of features F
    hidden: int  # width d; the benchmark's attention splits it into eight heads
    num_classes: int  # number of classes; two get one logit
    backbone: str = "benchmark"  # benchmark or tuned
    layers: int = 1  # number of layers L
    num_graphs: int = 1  # graphs read in parallel: 1 the baseline, 2 ECG
    dropout: float = 0.0  # dropout rate
    norm: str = "batch"  # normalisation of the tuned backbone: batch, layer or none
    gate: str = "none"  # node for a NodeGate between several graphs
    evolved_layers: str = "all"  # last: those before it read the first graph alone
    options: Options = field(default_factory=dict, hash=False)  # see read_options
    num_nodes: int | None = None  # for models with a weight per node (linkx, glognn)

    @property
    def out_channels(self) -> int:
        """Number of logits: one for two classes."""
        return 1 if self.num_classes == 2 else self.num_classes

    @property
    def first_evolved(self) -> int:
        """The first layer that reads evolved graphs; so do all after it."""
        return self.layers - 1 if self.evolved_layers == "last" else 0


@dataclass(frozen=True)
class Option:
    """One setting of one model; its default decides the type."""

    default: Value
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    def read(self, name: str, value: Any) -> Value:
        """A value as Python, YAML or a command line gives it, or one line why not."""
        name = f"model.options.{name}"
        if isinstance(self.default, str):
            check_choice(name, value, self.choices)
            return str(value)
        number: bool | int | float = parse(type(self.default), value, name, name)
        check_in_range(name, number, self.low, self.high)
        return number


class Traits:
    """What a model takes beside features and the input graph."""

    self_loops: ClassVar[bool] = False  # whether the input graph gets self-loops
    several_graphs: ClassVar[bool] = True  # whether it can read evolved graphs, too
    weighted_edges: ClassVar[bool] = True  # whether their edges may weigh differently
    gated: ClassVar[bool] = True  # whether a gate can stand between the graphs
    some_layers: ClassVar[bool] = True  # whether some layers alone can read them
    one_hop: ClassVar[bool] = True
    """Whether it has layers that read direct neighbours only, as batches need it."""
    label_input: ClassVar[bool] = True  # whether training labels may be input
    options: ClassVar[dict[str, Option]] = {}  # what model.options may hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What a network may know before it is trained: no label of any other node."""

    x: Tensor
    graphs: Sequence[GraphInput]
    train_index: Tensor
    train_y: Tensor  # classes of the training nodes, in their order, [n]


class Network(nn.Module):
    """What training needs of a network: representations, and logits from them."""

    undecayed: ClassVar[tuple[str, ...]] = ()
    """Parameters that weight decay leaves alone."""
    output: nn.Module  # maps a representation to logits, unless classify says otherwise
    extra_loss: Tensor | None = None
    """What the last forward pass in training adds to the loss, if anything."""

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The last hidden representation. ``[N, F]`` to ``[N, d]``."""
        raise NotImplementedError

    def classify(self, states: Tensor) -> Tensor:
        """Logits of a representation. ``[N, d]`` to ``[N, C]``, or ``[N, 1]``."""
        logits: Tensor = self.output(states)
        return logits

    def forward(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        return self.classify(self.represent(x, graphs))

    def prepare(self, known: Known) -> torch.optim.AdamW | None:
        """Called once before the first step: start weights from training labels.

        It may give the optimizer that they come from, for the training to go on with.
        """
        return None

    def take_extra_loss(self) -> Tensor | None:
        """Hand over ``extra_loss``, once; nothing in it may wait for the device."""
        loss, self.extra_loss = self.extra_loss, None
        return loss


class LayeredNetwork(Network):
    """A network of layers, in which nodes meet their neighbours once in each.

    Such a network can be computed for some nodes only: a layer reads parts of graphs,
    see ``SampledAdjacency``, and gives the states of the targets in them. Layers from
    ``first_evolved`` on read more than the first graph.
    """

    num_layers: int
    first_evolved: int = 0
    one_hop: bool = True
    """Whether a layer reads direct neighbours only; otherwise parts are not enough."""

    def enter(self, x: Tensor) -> Tensor:
        """The first states, each node for itself. ``[n, F]`` to ``[n, d]``."""
        raise NotImplementedError

    def layer(self, index: int, states: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        """The states after one of the layers. ``[n, d]`` to ``[num_targets, d]``."""
        raise NotImplementedError

    def leave(self, states: Tensor) -> Tensor:
        """The representation, from the last layer's states; each node for itself."""
        return states

    def represent(self, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
        states = self.enter(x)
        for index in range(self.num_layers):
            states = self.layer(index, states, [graph.at(index) for graph in graphs])
        return self.leave(states)
