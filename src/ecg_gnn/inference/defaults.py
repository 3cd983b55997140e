"""Settings for a graph nobody has tuned: by its size and its homophily."""

from dataclasses import dataclass
from typing import TypeVar

from ecg_gnn.config import (
    CrossFitModels,
    EmbedConfig,
    EvolveConfig,
    EvolvedLayers,
    FitConfig,
    Gate,
    Knn,
    ModelConfig,
    RunConfig,
)
from ecg_gnn.data import GraphDataset
from ecg_gnn.tabular.import_report import homophily

_Number = TypeVar("_Number", int, float)

# Below it neighbours say little about a node or the opposite: SAGE keeps a node's own
# state apart from theirs, GCN mixes both.
_HETEROPHILOUS = 0.3
_SMALL, _LARGE = 5_000, 100_000
_NODES_PER_NEIGHBOUR = 10
IMBALANCED = 2.0
"""Classes are weighed from this ratio of the largest to the smallest on."""


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What a user may set; None is chosen by the graph.

    Attributes:
        embedding: Weak classifier: mlp, bgrl, mlp+bgrl, features, or none.
        model: Message-passing module.
        k: Neighbours per node in the evolved graph.
        knn: How they are found: auto, exact, ivf or hnsw.
        cross_fit: Folds of cross-fitting the weak classifier; 0 is none.
        cross_fit_models: Who finds neighbours of nodes that train none: own, or all.
        layers: Number of layers.
        hidden: Width.
        steps: Training steps.
        lr: Learning rate.
        gate: none, or node: every node learns how much it takes of each graph.
        evolved_layers: all, or last: the others read the graph alone.
        label_input: Share of training labels that are input in a step; 0 is none.
        balance: Whether rare classes are weighed up in training.
        split: Which of the graph's splits.
        seed: Determines everything random.
        device: auto, cpu or cuda.

    Examples:
        >>> FitOptions(embedding="none", steps=100).k is None  # the graph decides
        True
    """

    embedding: str = "mlp"
    model: str | None = None
    k: int | None = None
    knn: Knn = "auto"
    cross_fit: int = 0
    cross_fit_models: CrossFitModels = "own"
    layers: int | None = None
    hidden: int | None = None
    steps: int | None = None
    lr: float | None = None
    gate: Gate = "none"
    evolved_layers: EvolvedLayers = "all"
    label_input: float = 0.0
    balance: bool | None = None
    split: int = 0
    seed: int = 0
    device: str = "auto"


def choose_settings(dataset: GraphDataset, options: FitOptions) -> RunConfig:
    """Fill in what is not given; to be resolved."""
    nodes = dataset.num_nodes
    steps = 300 if nodes <= _SMALL else 200 if nodes <= _LARGE else 100
    k = max(1, min(10, nodes // _NODES_PER_NEIGHBOUR, nodes - 1))
    hidden = 64 if nodes <= _SMALL else 128
    return RunConfig(
        seed=options.seed,
        splits=(options.split,),
        device=options.device,
        embed=EmbedConfig(
            names=(options.embedding,),
            cross_fit=options.cross_fit,
            cross_fit_models=options.cross_fit_models,
        ),
        evolve=EvolveConfig(k=_given(options.k, k), knn=options.knn),
        model=ModelConfig(
            name=options.model or _model(dataset),
            layers=_given(options.layers, 2),
            hidden=_given(options.hidden, hidden),
            gate=options.gate,
            evolved_layers=options.evolved_layers,
        ),
        train=FitConfig(
            steps=_given(options.steps, steps),
            lr=_given(options.lr, 3e-3),
            label_input=options.label_input,
        ),
    )


def _given(value: _Number | None, default: _Number) -> _Number:
    """What was asked for, zero too: whether it can be had is checked later."""
    return default if value is None else value


def wants_balance(dataset: GraphDataset, options: FitOptions) -> bool:
    """Whether classes are weighed: as asked, else where they differ much in size."""
    if options.balance is not None:
        return options.balance
    train = dataset.y[dataset.train_masks[options.split]]
    counts = train.bincount(minlength=dataset.num_classes)
    return bool(counts.max() >= IMBALANCED * counts[counts > 0].min())


def _model(dataset: GraphDataset) -> str:
    found = homophily(dataset)["adjusted_homophily"]
    return "gcn" if found is not None and found >= _HETEROPHILOUS else "sage"
