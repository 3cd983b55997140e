"""Networks by name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ecg_gnn.config.classify_settings import selectable
from ecg_gnn.nn.benchmark_net import MODULES, NUM_HEADS, BenchmarkNet
from ecg_gnn.nn.network import GATES, Network, NetworkSpec, Options, read_all
from ecg_gnn.nn.specialised import SPECIALISED
from ecg_gnn.nn.tuned_net import NORMS, TUNED_CONVS, TUNED_OPTIONS, TunedNet
from ecg_gnn.system.checks import InputError, check_choice, check_in_range


def wants_self_loops(backbone: str, model: str) -> bool:
    """Whether the input graph gets self-loops before this model reads it."""
    if model in SPECIALISED:
        return SPECIALISED[model].self_loops
    return backbone == "tuned" or MODULES[model].self_loops


def takes_evolved_graphs(backbone: str, model: str) -> bool:
    """Whether a model has room for graphs beside the input graph."""
    if model in SPECIALISED:
        return SPECIALISED[model].several_graphs
    # Whether there is such a model is checked elsewhere, in one line.
    return backbone == "tuned" or model not in MODULES or MODULES[model].uses_graph


def takes_weights(backbone: str, model: str) -> bool:
    """Whether a model's evolved edges may weigh differently."""
    kind = SPECIALISED.get(model)
    return kind.weighted_edges if kind else takes_evolved_graphs(backbone, model)


def takes_gate(backbone: str, model: str) -> bool:
    """Whether a model can have a gate between its graphs."""
    kind = SPECIALISED.get(model)
    return kind.gated if kind else takes_evolved_graphs(backbone, model)


def chooses_layers(backbone: str, model: str) -> bool:
    """Whether a model can read evolved graphs in some of its layers alone."""
    return model not in SPECIALISED and takes_evolved_graphs(backbone, model)


def takes_batches(backbone: str, model: str) -> bool:
    """Whether a model can be trained on sampled neighbours, layer by layer."""
    kinds: Mapping[str, Any] = MODULES if backbone == "benchmark" else TUNED_CONVS
    return model not in SPECIALISED and bool(kinds[model].one_hop)


def takes_labels(model: str) -> bool:
    """Whether labels of training nodes may be input beside a model's features."""
    return model not in SPECIALISED or SPECIALISED[model].label_input


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
    rules = (("evolved_layers", "all", chooses_layers), ("gate", "none", takes_gate))
    for name, usual, allowed in rules:
        if (given := getattr(spec, name)) != usual and not allowed(backbone, model):
            raise InputError(
                f"{name!r} must be one of [{usual!r}] for the model {model!r} "
                f"(got {given!r})"
            )
    check_in_range("layers", spec.layers, 1, None)
    check_in_range("hidden", spec.hidden, 1, None)
    check_in_range("dropout", spec.dropout, 0, 0.99)
    alone = model in SPECIALISED and not SPECIALISED[model].several_graphs
    if spec.num_graphs > 1 and alone:
        several = [name for name, other in SPECIALISED.items() if other.several_graphs]
        raise InputError(
            f"'model' must be one of {several} or a model of a backbone to read "
            f"{spec.num_graphs} graphs: {model!r} reads the input graph only"
        )
