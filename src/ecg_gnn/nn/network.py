"""What training needs of any network, and what a network is built from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

from torch import Tensor, nn

from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import InputError, check_choice, check_in_range

Value = bool | int | float | str
Options = Mapping[str, Any]  # every option of a model by its name, checked


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """Everything that ``build_network`` reads, checked there.

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
    evolved_layers: str = "all"
    """``last`` if the layers before it read the first graph alone"""
    options: Options = field(default_factory=dict, hash=False)
    """What only this model has; see ``read_options``"""
    num_nodes: int | None = None  # for models with a weight per node (linkx, glognn)

    @property
    def out_channels(self) -> int:
        """Number of logits: one for two classes."""
        return 1 if self.num_classes == 2 else self.num_classes


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
        number = _number(type(self.default), value)
        if number is None:
            wanted = type(self.default).__name__
            raise InputError(f"{name!r} must be of type {wanted} (got {value!r})")
        if not isinstance(self.default, bool):
            check_in_range(name, number, self.low, self.high)
        return number


def read_all(model: str, declared: Mapping[str, Option], given: Options) -> Options:
    """Every declared option: as given, else its default; others are refused."""
    for name in given:
        check_choice(f"option of {model}", name, declared)
    return {
        name: declared[name].read(name, given.get(name, declared[name].default))
        for name in sorted(declared)
    }


def _number(wanted: type, value: Any) -> bool | int | float | None:
    if wanted is bool or isinstance(value, bool):
        return value if wanted is bool and isinstance(value, bool) else None
    if wanted is int:
        return int(value) if isinstance(value, Integral) else None
    try:  # YAML reads 3e-5 as text, and any other text too
        return float(value) if isinstance(value, Real | str) else None
    except ValueError:
        return None


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
        """Logits of every node."""
        return self.classify(self.represent(x, graphs))

    def prepare(self, known: Known) -> None:
        """Called once before the first step: start weights from training labels."""

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
        """All layers, one after another."""
        states = self.enter(x)
        for index in range(self.num_layers):
            states = self.layer(index, states, [graph.at(index) for graph in graphs])
        return self.leave(states)
