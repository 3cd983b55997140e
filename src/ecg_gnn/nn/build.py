"""Networks by name."""

from collections.abc import Mapping
from typing import Any

from ecg_gnn.nn.benchmark_net import BenchmarkNet
from ecg_gnn.nn.gate import GATES
from ecg_gnn.nn.modules import MODULES, NUM_HEADS
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.options import Options, read_all
from ecg_gnn.nn.specialised import SPECIALISED
from ecg_gnn.nn.specialised.base import Sizes
from ecg_gnn.nn.tuned_net import NORMS, TUNED_CONVS, TUNED_OPTIONS, TunedNet
from ecg_gnn.system.checks import InputError, check_choice, check_in_range

BACKBONES = ("benchmark", "tuned")


def model_names(backbone: str) -> list[str]:
    """The models a backbone offers; those of ``SPECIALISED`` are without one."""
    check_choice("backbone", backbone, BACKBONES)
    return list(MODULES if backbone == "benchmark" else TUNED_CONVS)


def selectable(backbone: str) -> list[str]:
    """The models that a run may name: a specialised one leaves the backbone alone."""
    more = SPECIALISED if backbone == "benchmark" else ()
    return [*model_names(backbone), *more]


def wants_self_loops(backbone: str, model: str) -> bool:
    """Whether the input graph gets self-loops before this model reads it."""
    if model in SPECIALISED:
        return SPECIALISED[model].self_loops
    return backbone == "tuned" or MODULES[model].self_loops


def takes_evolved_graphs(backbone: str, model: str) -> bool:
    """Whether a model has room for graphs beside the input graph."""
    if model in SPECIALISED:
        return SPECIALISED[model].several_graphs
    return backbone == "tuned" or MODULES[model].uses_graph


def takes_weights(backbone: str, model: str) -> bool:
    """Whether a model's evolved edges may weigh differently."""
    if model in SPECIALISED:
        return SPECIALISED[model].weighted_edges
    return takes_evolved_graphs(backbone, model)


def takes_gate(backbone: str, model: str) -> bool:
    """Whether a model can have a gate between its graphs."""
    if model in SPECIALISED:
        return SPECIALISED[model].gated
    return takes_evolved_graphs(backbone, model)


def chooses_layers(backbone: str, model: str) -> bool:
    """Whether a model can read evolved graphs in some of its layers alone."""
    return model not in SPECIALISED and takes_evolved_graphs(backbone, model)


def takes_labels(model: str) -> bool:
    """Whether labels of training nodes may be input beside a model's features."""
    return model not in SPECIALISED or SPECIALISED[model].label_input


def read_options(
    model: str, given: Mapping[str, Any], backbone: str = "benchmark"
) -> Options:
    """All options of a specialised model: as given, else their defaults.

    Of the tuned backbone only those that are not at their defaults: its runs had names
    before it had options.

    Raises:
        InputError: For an option that it does not have, or a value out of range.
    """
    if backbone == "tuned":
        found = read_all(model, TUNED_OPTIONS, given)
        usual = {name: option.default for name, option in TUNED_OPTIONS.items()}
        return {name: value for name, value in found.items() if value != usual[name]}
    declared = SPECIALISED[model].options if model in SPECIALISED else {}
    return read_all(model, declared, given)


def build_network(
    *,
    backbone: str,
    model: str,
    in_channels: int,
    hidden_channels: int,
    num_classes: int,
    num_layers: int,
    num_graphs: int,
    dropout: float,
    norm: str = "batch",
    gate: str = "none",
    evolved_layers: str = "all",
    options: Mapping[str, Any] | None = None,
    num_nodes: int | None = None,
) -> Network:
    """Build a network by name; two classes get one logit.

    Args:
        backbone: ``benchmark`` or ``tuned``.
        model: Message-passing module, see ``model_names``.
        in_channels: Number of features.
        hidden_channels: Width; the benchmark's attention splits it into eight heads.
        num_classes: Number of classes.
        num_layers: Number of layers.
        num_graphs: Graphs read in parallel: 1 the baseline, 2 ECG.
        dropout: Dropout rate.
        norm: Normalisation of the tuned backbone.
        gate: ``node`` for a ``NodeGate`` between several graphs.
        evolved_layers: ``last`` if the layers before it read the first graph alone.
        options: What only this model has; see ``read_options``.
        num_nodes: For models with a weight per node (linkx, glognn).
    """
    check_choice("model", model, selectable(backbone))
    check_choice("norm", norm, NORMS)
    check_choice("gate", gate, GATES)
    if evolved_layers != "all" and not chooses_layers(backbone, model):
        raise InputError(
            f"'evolved_layers' must be one of ['all'] for the model {model!r} "
            f"(got {evolved_layers!r})"
        )
    if gate != "none" and not takes_gate(backbone, model):
        raise InputError(
            f"'gate' must be one of ['none'] for the model {model!r} (got {gate!r})"
        )
    check_in_range("layers", num_layers, 1, None)
    check_in_range("hidden", hidden_channels, 1, None)
    check_in_range("dropout", dropout, 0, 0.99)
    chosen = read_options(model, options or {}, backbone)
    if model in SPECIALISED:
        wanted = Sizes(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            num_classes=num_classes,
            num_layers=num_layers,
            num_graphs=num_graphs,
            num_nodes=num_nodes,
            gate=gate,
        )
        return _build_specialised(model, wanted, dropout, chosen)
    out_channels = 1 if num_classes == 2 else num_classes
    sizes = (in_channels, hidden_channels, out_channels, num_layers, num_graphs)
    if backbone == "tuned":
        return TunedNet(
            model, *sizes, dropout, norm, gate, **chosen, evolved_layers=evolved_layers
        )
    if model.startswith(("gat", "gt")) and hidden_channels % NUM_HEADS:
        raise InputError(
            f"'hidden' must be a multiple of {NUM_HEADS}, the number of attention "
            f"heads (got {hidden_channels})"
        )
    return BenchmarkNet(model, *sizes, dropout, gate, evolved_layers=evolved_layers)


def _build_specialised(
    model: str, sizes: Sizes, dropout: float, options: Options
) -> Network:
    kind = SPECIALISED[model]
    if sizes.num_graphs > 1 and not kind.several_graphs:
        allowed = [name for name, other in SPECIALISED.items() if other.several_graphs]
        raise InputError(
            f"'model' must be one of {allowed} or a model of a backbone to read "
            f"{sizes.num_graphs} graphs: {model!r} reads the input graph only"
        )
    return kind(sizes, dropout, options)
