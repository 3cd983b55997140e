"""Step 3: its networks by name, the settings of one, and how it is trained."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ecg_gnn.config.setting import Section, setting
from ecg_gnn.reading import read_yaml
from ecg_gnn.system.checks import InputError, check_choice

MODULES = {
    "resnet": "ResNetModule",
    "gcn": "GCNModule",
    "sage": "SAGEModule",
    "tag": "TAGModule",
    "gat": "GATModule",
    "gat-sep": "GATSepModule",
    "gt": "GTModule",
    "gt-sep": "GTSepModule",
}
"""Of the benchmark backbone: classes in ``nn.benchmark_net``."""
TUNED_CONVS = {
    "gcn": "_TunedConv",
    "sage": "_TunedSAGE",
    "tag": "_TunedTAG",
    "gat": "_TunedGAT",
}
"""Of the tuned backbone: classes in ``nn.tuned_net``."""
SPECIALISED = {
    "h2gcn": "h2gcn:H2GCN",
    "cpgnn": "cpgnn:CPGNN",
    "gpr-gnn": "hop_filters:GPRGNN",
    "fsgnn": "hop_filters:FSGNN",
    "glognn": "node_rows:GloGNN",
    "fagcn": "gated_messages:FAGCN",
    "gbk-gnn": "gated_messages:GBKGNN",
    "jacobiconv": "hop_filters:JacobiConv",
    "polynormer": "polynormer:Polynormer",
    "linkx": "node_rows:LINKX",
    "acm-gnn": "hop_filters:ACMGNN",
    "ggcn": "gated_messages:GGCN",
    "wrgat": "structural:WRGAT",
    "geom-gcn": "structural:GeomGCN",
}
"""Whole networks: ``module:class`` below ``nn.specialised``."""
BACKBONES = ("benchmark", "tuned")
BY_HOMOPHILY = "auto"
"""Stands for the model that a graph's homophily suggests."""


def model_names(backbone: str) -> list[str]:
    """The models a backbone offers; those of ``SPECIALISED`` are without one."""
    check_choice("backbone", backbone, BACKBONES)
    return list(MODULES if backbone == "benchmark" else TUNED_CONVS)


def selectable(backbone: str) -> list[str]:
    """The models that a run may name: a specialised one leaves the backbone alone."""
    more = SPECIALISED if backbone == "benchmark" else ()
    return [*model_names(backbone), *more]


def check_model(name: str, backbone: str) -> None:
    """Refuse a model that this backbone does not have."""
    if name not in (allowed := [*selectable(backbone), BY_HOMOPHILY]):
        # What is right for another backbone is no typing error.
        check_choice("model", name, [*selectable("benchmark"), BY_HOMOPHILY])
        raise InputError(
            f"'model' must be one of {allowed} for the backbone {backbone!r} "
            f"(got {name!r})"
        )


# Typing errors are caught here, before memory is taken for them.
WIDEST, DEEPEST, LONGEST = 2**20, 10_000, 10_000_000
SMALL, LARGE = 5_000, 100_000
"""The preset ``auto``: narrow up to SMALL nodes, fewer steps beyond each of them."""
_DEFAULT_FANOUT = (10,)
# What the settings of batches have in common.
_OF_BATCHES: dict[str, Any] = {
    "last_only": True,
    "added_later": True,
    "panel": "Graphs too large for full-batch steps",
}


def _steps(nodes: int) -> int:
    """Small graphs can have more steps, and need them."""
    return 300 if nodes <= SMALL else 200 if nodes <= LARGE else 100


def read_fanout(text: str) -> tuple[int, ...]:
    """Read ``10`` or ``15,5``."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"'fanout' must be like 10 or 15,5 (got {text!r})") from None


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Read ``alpha=0.2`` and the like; numbers and yes/no as YAML writes them."""
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or name in options:
            raise InputError(
                f"'set' must be like alpha=0.2, each name once (got {text!r})"
            )
        try:
            options[name] = read_yaml(name, value)
        except InputError:
            options[name] = value
    return options


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section, prefix="model."):
    """Step 3: the network.

    Examples:
        >>> ModelConfig(name="gat-sep", layers=2, hidden=128).dropout
        0.2
    """

    name: str = setting("gcn", "Message passing, or a whole network", option="model")
    backbone: str = setting(
        "benchmark",
        "benchmark (residual blocks, as in the paper) or tuned (gcn, sage, gat with a "
        "linear skip)",
    )
    layers: int | None = setting(
        None, "Number of layers", between=(1, DEEPEST), presets={"quick": 3, "auto": 2}
    )
    hidden: int | None = setting(
        None,
        "Width",
        between=(1, WIDEST),
        presets={"quick": 64, "auto": lambda nodes: 64 if nodes <= SMALL else 128},
    )
    dropout: float = setting(0.2, "Dropout rate", between=(0, 0.99))
    drop_edge: float | None = setting(
        None,
        "Share of evolved edges dropped at random in every layer and training step",
        between=(0, 1),
        presets={"quick": 0.5},
        needs="evolved graph",
    )
    norm: Literal["batch", "layer", "none"] = setting(
        "batch", "Norm of the tuned backbone: batch, layer or none"
    )
    gate: Literal["none", "node"] = setting(
        "none",
        "How graphs are combined: none (only the paper's projection), or node (before "
        "it, every node learns how much to take from each graph)",
        tag="gated",
        meaning="every node learns how much to take from each graph",
        needs="evolved graph",
        last_only=True,
        added_later=True,
    )
    evolved_layers: Literal["all", "last"] = setting(
        "all",
        "Layers that read evolved graphs: all (as in the paper), or last (with "
        "--cross-fit, no training label then returns to its node through the evolved "
        "edges of its neighbours)",
        tag="in the last layer",
        meaning="no other layer reads the evolved graphs",
        needs="evolved graph",
        added_later=True,
    )
    options: dict[str, Any] = setting(
        dict,
        "NAME=VALUE: a setting that only one of the whole networks has, such as "
        "alpha=0.2 for gpr-gnn. Repeatable",
        option="option",
        flag="--set",
        added_later=True,
        read=read_assignments,
    )

    def network(self) -> dict[str, Any]:
        """Its part of an ``nn.NetworkSpec``: all except what depends on the graphs."""
        fields = vars(self) | {"model": self.name}
        return {n: v for n, v in fields.items() if n not in ("name", "drop_edge")}


@dataclass(frozen=True, kw_only=True)
class TrainConfig(Section, prefix="train."):
    """Step 3: how the classifier is trained.

    Examples:
        >>> TrainConfig(steps=100, lr="3e-3").lr  # as YAML reads it
        0.003
        >>> TrainConfig(batch_size=1024, fanout=(15, 5)).fanouts(3)
        (15, 5, 5)
    """

    batch_size: int = setting(
        0,
        "Train by batches of N training nodes and their sampled neighbours in all "
        "graphs; a step is a batch. Scores are exact. 0: full-batch steps",
        metavar="N",
        between=(0, None),
        **_OF_BATCHES,
    )
    fanout: tuple[int, ...] = setting(
        _DEFAULT_FANOUT,
        "Neighbours sampled per node and layer: one number for every graph, or one for "
        "the input graph and one for each evolved graph, such as 15,5. -1: all (10)",
        metavar="F[,F…]",
        **_OF_BATCHES,
        read=read_fanout,
    )
    eval_every: int | None = setting(
        None,
        "Steps between evaluations (1; with mini-batches: one epoch, or a twentieth of "
        "the training if shorter)",
        metavar="STEPS",
        between=(1, None),
        **_OF_BATCHES,
    )
    steps: int | None = setting(
        None,
        "Training steps: full batches, each with an evaluation, or mini-batches",
        between=(1, LONGEST),
        presets={"quick": 200, "paper": 1000, "auto": _steps},
    )
    lr: float | None = setting(
        None,
        "Learning rate of AdamW",
        between=(0, None),
        presets={"quick": 3e-3, "paper": 3e-5},
    )
    weight_decay: float = setting(
        0.0, "Weight decay of AdamW, also for the MLP embedding (0)", between=(0, None)
    )
    precision: Literal["auto", "fp32", "tf32", "bf16"] = setting(
        "auto", "auto (tf32 on a GPU, else fp32), fp32, tf32 (GPU) or bf16"
    )
    label_input: float = setting(
        0.0,
        "Also give labels of training nodes as input: each step shows a random share "
        "RATE of them and learns to predict the rest; predictions use all. "
        "Transductive, and marked in every table. Try 0.5; 0 is off",
        metavar="RATE",
        between=(0, 0.99),
        tag="labels",
        meaning="transductive. Labels of training nodes are input (in training, those "
        "of a random share, and only the others are learned): compare such rows only "
        "with each other",
        last_only=True,
        added_later=True,
    )

    def _check(self) -> None:
        if not self.fanout or any(drawn != -1 and drawn < 1 for drawn in self.fanout):
            raise InputError(
                "'fanout' must be -1 (all neighbours) or at least 1, once or for each "
                f"graph (got {list(self.fanout)})"
            )
        if not self.batch_size and self.fanout != _DEFAULT_FANOUT:
            raise InputError(
                "'batch_size' must be at least 1 with 'fanout', which full-batch "
                f"steps do not have (got {self.batch_size})"
            )

    def fanouts(self, num_graphs: int) -> tuple[int, ...]:
        """The fan-out in each graph; graphs without their own take the last."""
        missing = max(0, num_graphs - len(self.fanout))
        return (self.fanout + self.fanout[-1:] * missing)[:num_graphs]


# Defaults of verbs that no run has as a setting; the verbs need them before torch.
ADVISED_EMBEDDINGS, ADVISED_KS = ("features", "mlp", "bgrl"), (10, 3)
MOST_EXPLAINED = 20  # neighbours in each graph, and columns, that ``explain`` examines
