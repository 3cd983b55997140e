"""Networks by name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ecg_gnn.config.classify_settings import selectable
from ecg_gnn.nn.benchmark_net import MODULES, NUM_HEADS, BenchmarkNet, GraphModule
from ecg_gnn.nn.network import GATES, Network, NetworkSpec, Options, read_all
from ecg_gnn.nn.specialised import SPECIALISED
from ecg_gnn.nn.tuned_net import NORMS, TUNED_CONVS, TUNED_OPTIONS, TunedNet
from ecg_gnn.system.checks import InputError, check_choice, check_in_range


class Traits(NamedTuple):
    """What a model takes beside features and the input graph."""

    self_loops: bool  # whether the input graph gets self-loops before it is read
    evolved_graphs: bool  # whether there is room for graphs beside it
    weights: bool  # whether their edges may weigh differently
    gate: bool  # whether a gate can stand between the graphs
    some_layers: bool  # whether some of its layers alone can read evolved graphs
    batches: bool  # whether it can be trained on sampled neighbours, layer by layer
    labels: bool  # whether labels of training nodes may be input


def traits_of(backbone: str, model: str) -> Traits:
    """What a model takes; one that does not exist is refused elsewhere, in one line."""
    if (whole := SPECIALISED.get(model)) is not None:
        graphs = whole.several_graphs, whole.weighted_edges, whole.gated
        return Traits(whole.self_loops, *graphs, False, False, whole.label_input)
    if backbone == "tuned":
        conv = TUNED_CONVS.get(model, TUNED_CONVS["gcn"])
        return Traits(True, True, True, True, True, conv.one_hop, True)
    module = MODULES.get(model, GraphModule)
    reads = module.uses_graph
    return Traits(module.self_loops, reads, reads, reads, reads, module.one_hop, True)


def read_options(
    model: str, given: Mapping[str, Any], backbone: str = "benchmark"
) -> Options:
    """All options of a specialised model: as given, else their defaults.

    Of the tuned backbone only those that are not at their defaults: its runs had names
    before it had options.
    """
    if backbone == "tuned":
        known = TUNED_OPTIONS | TUNED_CONVS[model].options
        options = read_all(model, known, given)
        usual = {name: option.default for name, option in known.items()}
        return {name: value for name, value in options.items() if value != usual[name]}
    kind: Any = SPECIALISED[model] if model in SPECIALISED else MODULES[model]
    return read_all(model, kind.options, given)


def build_network(spec: NetworkSpec) -> Network:
    """Build a network by name; refuse what this model or backbone does not have."""
    _check(spec)
    chosen = read_options(spec.model, spec.options, spec.backbone)
    spec = replace(spec, options=chosen)
    if spec.model in SPECIALISED:
        return SPECIALISED[spec.model](spec)
    if spec.backbone == "tuned":
        return TunedNet(spec)
    if spec.model.startswith(("gat", "gt")) and spec.hidden % NUM_HEADS:
        raise InputError(
            f"'hidden' must be a multiple of {NUM_HEADS}, the number of attention "
            f"heads (got {spec.hidden})"
        )
    return BenchmarkNet(spec)


def _check(spec: NetworkSpec) -> None:
    model, backbone = spec.model, spec.backbone
    check_choice("model", model, selectable(backbone))
    check_choice("norm", spec.norm, NORMS)
    check_choice("gate", spec.gate, GATES)
    traits = traits_of(backbone, model)
    rules = (
        ("evolved_layers", "all", traits.some_layers),
        ("gate", "none", traits.gate),
    )
    for name, usual, allowed in rules:
        if (given := getattr(spec, name)) != usual and not allowed:
            raise InputError(
                f"{name!r} must be one of [{usual!r}] for the model {model!r} "
                f"(got {given!r})"
            )
    check_in_range("layers", spec.layers, 1, None)
    check_in_range("hidden", spec.hidden, 1, None)
    check_in_range("dropout", spec.dropout, 0, 0.99)
    alone = model in SPECIALISED and not traits.evolved_graphs
    if spec.num_graphs > 1 and alone:
        several = [name for name, other in SPECIALISED.items() if other.several_graphs]
        raise InputError(
            f"'model' must be one of {several} or a model of a backbone to read "
            f"{spec.num_graphs} graphs: {model!r} reads the input graph only"
        )
