"""Networks by name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from ecg_gnn.config import ModelConfig, known
from ecg_gnn.config.classify_settings import selectable
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn.benchmark_net import MODULES, NUM_HEADS, BenchmarkNet, GraphModule
from ecg_gnn.nn.network import GraphInput, Network, NetworkSpec, Options, Traits
from ecg_gnn.nn.specialised import SPECIALISED
from ecg_gnn.nn.tuned_net import TUNED_CONVS, TUNED_OPTIONS, TunedNet
from ecg_gnn.system.checks import InputError, check_choice


def traits_of(backbone: str, model: str) -> type[Traits]:
    """What a model takes; one that does not exist is refused elsewhere, in one line."""
    if model in SPECIALISED:
        return SPECIALISED[model]
    if backbone == "tuned":
        return TUNED_CONVS.get(model, TUNED_CONVS["gcn"])
    return MODULES.get(model, GraphModule)


def graph_inputs(
    model: ModelConfig,
    num_nodes: int,
    edge_index: Tensor,
    evolved: Iterable[tuple[Tensor, Tensor | None]],
) -> list[GraphInput]:
    """The input graph as a model wants it, then evolved ones (and weights) as given."""
    loops = traits_of(model.backbone, model.name).self_loops
    given = Adjacency.from_edge_index(edge_index, num_nodes, add_self_loops=loops)
    graphs = [GraphInput(given)]
    for edges, weights in evolved:
        made = Adjacency.from_edge_index(edges, num_nodes, edge_weight=weights)
        graphs.append(GraphInput(made, known(model.drop_edge)))
    return graphs


def refuse_unless(
    possible: bool, model: str, name: str, given: Any, usual: Any, why: str = ""
) -> None:
    """Refuse a setting that is not as usual, where a model cannot have another."""
    if given != usual and not possible:
        allowed = f"one of [{usual!r}]" if isinstance(usual, str) else usual
        raise InputError(
            f"{name!r} must be {allowed} for the model {model!r}{why} (got {given!r})"
        )


def read_options(
    model: str, given: Mapping[str, Any], backbone: str = "benchmark"
) -> Options:
    """All options of a specialised model: as given, else their defaults.

    Of the tuned backbone only those that are not at their defaults: its runs had names
    before it had options.
    """
    tuned, declared = backbone == "tuned", traits_of(backbone, model).options
    declared = TUNED_OPTIONS | declared if tuned else declared
    for name in given:
        check_choice(f"option of {model}", name, declared)
    read = {}
    for name, option in sorted(declared.items()):
        value = option.read(name, given.get(name, option.default))
        if not tuned or value != option.default:
            read[name] = value
    return read


def build_network(spec: NetworkSpec) -> Network:
    """Build a network by name; refuse what this model or backbone does not have."""
    model, backbone = spec.model, spec.backbone
    check_choice("model", model, selectable(backbone))
    traits, layers = traits_of(backbone, model), spec.evolved_layers
    refuse_unless(traits.some_layers, model, "evolved_layers", layers, "all")
    refuse_unless(traits.gated, model, "gate", spec.gate, "none")
    spec = replace(spec, options=read_options(model, spec.options, backbone))
    if model in SPECIALISED:
        if spec.num_graphs > 1 and not traits.several_graphs:
            several = [n for n, other in SPECIALISED.items() if other.several_graphs]
            raise InputError(
                f"'model' must be one of {several} or a model of a backbone to read "
                f"{spec.num_graphs} graphs: {model!r} reads the input graph only"
            )
        return SPECIALISED[model](spec)
    if backbone == "tuned":
        return TunedNet(spec)
    if model.startswith(("gat", "gt")) and spec.hidden % NUM_HEADS:
        raise InputError(
            f"'hidden' must be a multiple of {NUM_HEADS}, the number of attention "
            f"heads (got {spec.hidden})"
        )
    return BenchmarkNet(spec)
