"""Networks by name."""

from ecg_gnn.checks import InputError, check_choice, check_in_range
from ecg_gnn.nn.benchmark_net import BenchmarkNet
from ecg_gnn.nn.modules import MODULES, NUM_HEADS
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.tuned_net import NORMS, TUNED_CONVS, TunedNet

BACKBONES = ("benchmark", "tuned")


def model_names(backbone: str) -> list[str]:
    """The models a backbone offers."""
    check_choice("backbone", backbone, BACKBONES)
    return list(MODULES if backbone == "benchmark" else TUNED_CONVS)


def wants_self_loops(backbone: str, model: str) -> bool:
    """Whether the input graph gets self-loops before this model reads it."""
    return backbone == "tuned" or MODULES[model].self_loops


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
    """
    check_choice("model", model, model_names(backbone))
    check_choice("norm", norm, NORMS)
    check_in_range("layers", num_layers, 1, None)
    check_in_range("hidden", hidden_channels, 1, None)
    check_in_range("dropout", dropout, 0, 0.99)
    out_channels = 1 if num_classes == 2 else num_classes
    sizes = (in_channels, hidden_channels, out_channels, num_layers, num_graphs)
    if backbone == "tuned":
        return TunedNet(model, *sizes, dropout, norm)
    if model.startswith(("gat", "gt")) and hidden_channels % NUM_HEADS:
        raise InputError(
            f"'hidden' must be a multiple of {NUM_HEADS}, the number of attention "
            f"heads (got {hidden_channels})"
        )
    return BenchmarkNet(model, *sizes, dropout)
