"""The settings of one run: frozen, checked once, unknown keys refused.

Sections follow the three steps. A field that is None is filled in by the preset; what
a run really used is written into its output folder, and that file is itself a valid
``--config``.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeVar

from ecg_gnn._version import NUMERICS
from ecg_gnn.batch_settings import BatchSettings
from ecg_gnn.sections import Section, from_mapping
from ecg_gnn.system.checks import InputError, check_choice, check_in_range

_T = TypeVar("_T")

_WEAK_CLASSIFIERS = ("mlp", "bgrl", "mlp+bgrl", "mlp-gnn")
EMBEDDINGS = (*_WEAK_CLASSIFIERS, "features", "precomputed:FILE", "none")
OWN_PREFIX = "own:"
"""Marks an embedder that the caller brings as an object."""
CONTROLS = ("identity", "random", "oracle")
SelfLoops = Literal["exclude", "within_k", "add", "only"]
Similarity = Literal["cosine", "dot", "euclidean"]
EdgeWeights = Literal["uniform", "similarity"]
Knn = Literal["auto", "exact", "ivf", "hnsw"]
Gate = Literal["none", "node"]
EvolvedLayers = Literal["all", "last"]
CrossFitModels = Literal["own", "all"]
Preset = Literal["quick", "paper"]
Engine = Literal["fast", "reference"]
_ADDED_LATER = {
    "embed": ("cross_fit", "cross_fit_models"),
    "evolve": ("weights", "knn"),
    "model": ("options", "gate", "evolved_layers"),
    "train": ("label_input", "batch_size", "fanout", "eval_every"),
}
Precision = Literal["auto", "fp32", "tf32", "bf16"]
# A slip of the finger ends here, before memory is taken for it.
_WIDEST, _DEEPEST, _LONGEST = 2**20, 10_000, 10_000_000


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Section):
    """Step 1: weak classifiers.

    Examples:
        >>> EmbedConfig(names=("mlp", "bgrl", "mlp,bgrl")).names  # three variants
        ('mlp', 'bgrl', 'mlp,bgrl')
    """

    names: tuple[str, ...] = ("mlp",)
    """One ECG variant each; a comma inside joins several evolved graphs in one model"""
    layers: int | None = None
    """Residual blocks of the MLP"""
    hidden: int | None = None
    """Width of the MLP; BGRL's encoder is (hidden, hidden / 2)"""
    steps: int | None = None
    """Training steps of MLP and BGRL; as many as the classifier's unless given"""
    lr: float | None = None
    """Learning rate of the MLP; the classifier's unless given"""
    bgrl_lr: float = 1e-3
    """Peak learning rate of BGRL"""
    cross_fit: int = 0
    """Folds of cross-fitting: a training node's neighbours are found by a model that
    was not trained on its label; 0 trains one model on all of them"""
    cross_fit_models: CrossFitModels = "own"
    """Cross-fitted, who finds the neighbours of nodes that train no model: the model of
    their own fold alone, as for training nodes, or all models, each a share of the k"""

    prefix: ClassVar[str] = "embed."

    def _check(self) -> None:
        if not self.names:
            raise InputError(
                "'embed.names' must name at least one embedding (got none)"
            )
        for name in self.names:
            _check_embedding(name)
        _check_optional("embed.layers", self.layers, 1, _DEEPEST)
        _check_optional("embed.hidden", self.hidden, 2, _WIDEST)
        _check_optional("embed.steps", self.steps, 1, _LONGEST)
        _check_optional("embed.lr", self.lr, 0)
        check_in_range("embed.bgrl_lr", self.bgrl_lr, 0, None)
        if self.cross_fit:
            check_in_range("embed.cross_fit", self.cross_fit, 2, 100)
        elif self.cross_fit_models != "own":
            raise InputError(
                "'embed.cross_fit_models' must be 'own' without 'cross_fit' (5, say): "
                f"there is one model alone (got {self.cross_fit_models!r})"
            )


@dataclass(frozen=True, kw_only=True)
class EvolveConfig(Section):
    """Step 2: from embeddings to the evolved graph.

    Examples:
        >>> EvolveConfig(k=3, self_loops="within_k").k
        3
    """

    k: int | None = None
    """Neighbours per node in the evolved graph"""
    self_loops: SelfLoops = "exclude"
    """Whether a node is its own neighbour: never, as one of the k, or on top of them"""
    similarity: Similarity = "cosine"
    """What nearest means"""
    symmetric: bool = False
    """Also add every evolved edge reversed"""
    weights: EdgeWeights = "uniform"
    """What an evolved edge weighs: all the same, or its two ends' cosine similarity"""
    knn: Knn = "auto"
    """How neighbours are found: exactly, or by an index (ivf, hnsw), whose recall is
    recorded; auto is exact up to 100,000 nodes, and beyond while that takes no longer
    than ten minutes on two CPU cores, or a tenth of a second on a GPU"""

    prefix: ClassVar[str] = "evolve."

    def _check(self) -> None:
        _check_optional("k", self.k, 1)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(Section):
    """Step 3: the network.

    Examples:
        >>> ModelConfig(name="gat-sep", layers=2, hidden=128).dropout
        0.2
    """

    name: str = "gcn"
    """Message-passing module"""
    backbone: str = "benchmark"
    """The benchmark's residual network, or the tuned one"""
    layers: int | None = None
    """Number of layers"""
    hidden: int | None = None
    """Width"""
    dropout: float = 0.2
    """Dropout rate"""
    drop_edge: float | None = None
    """Share of evolved edges dropped afresh in every layer of every training step"""
    norm: str = "batch"
    """Normalisation of the tuned backbone"""
    gate: Gate = "none"
    """Whether every node learns how much it takes of each of the parallel graphs"""
    evolved_layers: EvolvedLayers = "all"
    """Which layers read evolved graphs: all, or the last alone, so that, cross-fitted,
    no label comes back to its node over the evolved edges of its neighbours"""
    options: dict[str, Any] = field(default_factory=dict, hash=False)
    """What only this model has, by name; see ``ecg_gnn.nn.read_options``"""

    prefix: ClassVar[str] = "model."

    def _check(self) -> None:
        _check_optional("layers", self.layers, 1, _DEEPEST)
        _check_optional("hidden", self.hidden, 1, _WIDEST)
        check_in_range("dropout", self.dropout, 0, 0.99)
        _check_optional("drop_edge", self.drop_edge, 0, 1)


@dataclass(frozen=True, kw_only=True)
class FitConfig(BatchSettings):
    """How the classifier is trained.

    Examples:
        >>> FitConfig(steps=100, lr="3e-3").lr  # as YAML reads it
        0.003
    """

    steps: int | None = None
    """Full-batch steps, each followed by an evaluation; or batches"""
    lr: float | None = None
    """Learning rate of AdamW"""
    weight_decay: float = 0.0
    """AdamW's weight decay"""
    precision: Precision = "auto"
    """fp32, tf32 (GPU) or bf16; auto is tf32 on a GPU and fp32 elsewhere"""
    label_input: float = 0.0
    """Share of training nodes whose label is input in a step, the others being learned;
    0: labels are no input"""

    prefix: ClassVar[str] = "train."

    def _check(self) -> None:
        _check_optional("steps", self.steps, 1, _LONGEST)
        _check_optional("lr", self.lr, 0)
        check_in_range("weight_decay", self.weight_decay, 0, None)
        check_in_range("label_input", self.label_input, 0, 0.99)
        super()._check()


@dataclass(frozen=True, kw_only=True)
class RunConfig(Section):
    """One run: a dataset, a model, and the variants that are compared on it.

    Examples:
        >>> from ecg_gnn import ModelConfig
        >>> config = RunConfig(dataset="tolokers", model=ModelConfig(name="sage"))
        >>> RunConfig.from_dict(config.to_dict()) == config
        True
        >>> RunConfig.from_dict({"sed": 1})
        Traceback (most recent call last):
        ecg_gnn.system.checks.InputError: a setting of 'config' must be one of ...
    """

    dataset: str = "minesweeper-gen"
    """Catalogue name, generator with parameters, or .npz file"""
    preset: Preset = "quick"
    """Fills in what is not given: quick (minutes on a laptop), or paper (its best)"""
    splits: tuple[int, ...] | None = None
    """Which of the dataset's splits to run"""
    random_splits: bool = False
    """Fresh stratified 50/25/25 splits from the seed instead of the dataset's own"""
    seed: int = 0
    """Determines everything random"""
    device: str = "auto"
    """auto, cpu, or cuda"""
    engine: Engine = "fast"
    """The fastest kernels there are, or the plain reference: equal up to rounding"""
    embed: EmbedConfig = field(default_factory=EmbedConfig)
    evolve: EvolveConfig = field(default_factory=EvolveConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: FitConfig = field(default_factory=FitConfig)

    def _check(self) -> None:
        check_in_range("seed", self.seed, 0, 2**62)
        if self.embed.cross_fit and self.evolve.symmetric:
            raise InputError(
                "'symmetric' must be off with 'cross_fit': reversed edges are found by "
                "models that saw the label of the node they lead to (got both)"
            )
        splits = self.splits
        if splits is not None and (not splits or len(set(splits)) != len(splits)):
            raise InputError(
                f"'splits' must name at least one split, each once (got {list(splits)})"
            )

    def to_dict(self) -> dict[str, Any]:
        """Nested plain values, for JSON and YAML."""
        values = dataclasses.asdict(self)
        # At their defaults they have no place: what settings named before there were
        # any of these keeps its name.
        for section, names in _ADDED_LATER.items():
            defaults = type(getattr(self, section))()
            for name in names:
                if values[section][name] == getattr(defaults, name):
                    del values[section][name]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read nested plain values; unknown keys and wrong types are refused."""
        config: Self = from_mapping(cls, values, "config")
        return config

    def run_id(self, dataset_sha256: str, *extra: str) -> str:
        """Twelve hex digits that name what is computed: settings, data and numerics."""
        content = json.dumps([NUMERICS, dataset_sha256, self.to_dict(), *extra])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


def known(value: _T | None) -> _T:
    """A setting that a resolved config has."""
    assert value is not None, "the config is not resolved"
    return value


def is_control(name: str) -> bool:
    """Whether an embedding's name is one of the controls."""
    return name in CONTROLS


def _check_embedding(name: str) -> None:
    """One embedding, or several that a comma joins; ``none`` joins nothing."""
    parts = name.split(",")
    allowed = [*EMBEDDINGS, *CONTROLS]
    if len(parts) > 1:
        allowed.remove("none")
    for part in parts:
        if not part.startswith(("precomputed:", OWN_PREFIX)):
            check_choice("embedding", part, allowed)


def _check_optional(
    name: str, value: float | None, low: float, high: float | None = None
) -> None:
    if value is not None:
        check_in_range(name, value, low, high)
