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
from ecg_gnn.config.classify_settings import (
    DEEPEST,
    LONGEST,
    WIDEST,
    ModelConfig,
    TrainConfig,
)
from ecg_gnn.config.embedders import EMBEDDING_HELP, check_embedding
from ecg_gnn.config.setting import Section, Setting, setting, settings_of
from ecg_gnn.config.typed import read_self_loops, read_splits
from ecg_gnn.system.checks import InputError

_T = TypeVar("_T")

SelfLoops = Literal["exclude", "within_k", "add", "only"]
Similarity = Literal["cosine", "dot", "euclidean"]
EdgeWeights = Literal["uniform", "similarity"]
Knn = Literal["auto", "exact", "ivf", "hnsw"]
CrossFitModels = Literal["own", "all"]
Preset = Literal["quick", "paper", "auto"]
Engine = Literal["fast", "reference"]
_NODES_PER_NEIGHBOUR = 10


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Section):
    """Step 1: weak classifiers.

    Examples:
        >>> EmbedConfig(names=("mlp", "bgrl", "mlp,bgrl")).names  # three variants
        ('mlp', 'bgrl', 'mlp,bgrl')
    """

    names: tuple[str, ...] = setting(("mlp",), EMBEDDING_HELP, option="embedding")
    layers: int | None = setting(
        None,
        "Residual blocks of the MLP",
        option="embed_layers",
        low=1,
        high=DEEPEST,
        presets={"quick": 2},
    )
    hidden: int | None = setting(
        None,
        "Width of the MLP; BGRL's encoder is (width, width / 2)",
        option="embed_hidden",
        low=2,
        high=WIDEST,
        presets={"quick": 64},
    )
    steps: int | None = setting(
        None,
        "Training steps of the weak classifier; as many as the classifier's unless "
        "given",
        option="embed_steps",
        low=1,
        high=LONGEST,
        like="train.steps",
    )
    lr: float | None = setting(
        None,
        "Learning rate of the MLP; the classifier's unless given",
        option="embed_lr",
        low=0,
        like="train.lr",
    )
    bgrl_lr: float = setting(1e-3, "Peak learning rate of BGRL", option=None, low=0)
    cross_fit: int = setting(
        0,
        "Train a weak classifier that reads labels K times, each time without one of K "
        "parts of the nodes, and find a node's neighbours with the model that never "
        "saw its label: training and test neighbourhoods become alike. 5, say; 0 is "
        "off",
        metavar="K",
        low=2,
        high=100,
        off=0,
        tag="cross-fitted",
        meaning="a node's neighbours come from a model that never saw its label; their "
        "own neighbours, over a second evolved layer, may know it",
        card="The weak classifier is cross-fitted: a node's neighbours are found by a "
        "model that was not trained on its class.",
        added_later=True,
    )
    cross_fit_models: CrossFitModels = setting(
        "own",
        "With --cross-fit, which models find the neighbours of nodes that train none: "
        "own (the model of their fold alone, as for training nodes), or all (every "
        "model a share of the k: several opinions on validation and test nodes)",
        tag="by all models",
        meaning="those of nodes that train none come from all such models",
        card="Those of nodes that do not train are found by all of these models, and "
        "those of new nodes by the first.",
        added_later=True,
    )

    prefix: ClassVar[str] = "embed."

    def _check(self) -> None:
        if not self.names:
            raise InputError(
                "'embed.names' must name at least one embedding (got none)"
            )
        for name in self.names:
            check_embedding(name)
        if not self.cross_fit and self.cross_fit_models != "own":
            raise InputError(
                "'cross_fit_models' must be 'own' without 'cross_fit' (5, say): there "
                f"is one model alone (got {self.cross_fit_models!r})"
            )


@dataclass(frozen=True, kw_only=True)
class EvolveConfig(Section):
    """Step 2: from embeddings to the evolved graph.

    Examples:
        >>> EvolveConfig(k=3, self_loops="within_k").k
        3
    """

    k: int | None = setting(
        None,
        "Neighbours per node in the evolved graph",
        low=1,
        presets={
            "quick": 10,
            "paper": 3,
            "auto": lambda nodes: max(
                1, min(10, nodes // _NODES_PER_NEIGHBOUR, nodes - 1)
            ),
        },
    )
    self_loops: SelfLoops = setting(
        "exclude",
        "Is a node its own neighbour? exclude: never; within_k: always, as one of the "
        "k (the paper's MLP graphs); add: on top of the k; only: nobody else",
        read=read_self_loops,
    )
    similarity: Similarity = setting(
        "cosine", "What nearest means: cosine, dot or euclidean"
    )
    symmetric: bool = setting(
        False,
        "Add every evolved edge reversed, too",
        flag="--symmetric/--directed",
    )
    weights: EdgeWeights = setting(
        "uniform",
        "What an evolved edge weighs in sums, means and attention: uniform, or "
        "similarity (the cosine of its two ends, at least 0.01)",
        option="edge_weights",
        tag="weighted",
        meaning="evolved edges weigh what their ends are similar",
        needs="similarity",
        added_later=True,
        kept=False,
    )
    knn: Knn = setting(
        "auto",
        "How neighbours are found: exact; ivf or hnsw (approximate, by an index; the "
        "recall is measured and recorded); auto (exact up to 100,000 nodes, and beyond "
        "while that does not take too long)",
        tag="approximate",
        meaning="neighbours are found by an index, which misses some",
        card="Neighbours were found by an approximate index; those of new nodes are "
        "found exactly.",
        added_later=True,
    )

    prefix: ClassVar[str] = "evolve."


@dataclass(frozen=True, kw_only=True)
class RunConfig(Section):
    """One run: a dataset, a model, and the variants that are compared on it.

    Examples:
        >>> from ecg_gnn import ModelConfig
        >>> config = RunConfig(dataset="tolokers", model=ModelConfig(name="sage"))
        >>> RunConfig.from_dict(config.to_dict()) == config
        True
        >>> RunConfig.of(model="sage", embed_layers=2).embed.layers  # as options
        2
        >>> RunConfig.from_dict({"sed": 1})
        Traceback (most recent call last):
        ecg_gnn.system.checks.InputError: a setting of 'config' must be one of ...
    """

    dataset: str = setting(
        "minesweeper-gen",
        "Catalogue name (see `ecg-gnn data list`), a generator with parameters such as "
        "csbm:nodes=5000,homophily=0.1, an .npz file, or a graph of your own as "
        "`ecg-gnn data import` makes it",
    )
    preset: Preset = setting(
        "quick",
        "What fills the options not given: quick (minutes on a laptop), paper (its "
        "best settings for this dataset and model), or auto (by the size of the graph, "
        "as in `ecg-gnn fit`)",
        identity=False,
    )
    splits: tuple[int, ...] | None = setting(
        None,
        "Such as 0-9 or 0,3,5; quick runs the first five",
        identity=False,
        read=read_splits,
    )
    random_splits: bool = setting(
        False,
        "Fresh stratified 50/25/25 splits from the seed instead of the dataset's own",
        flag="--random-splits/--own-splits",
    )
    seed: int = setting(0, "Random seed", low=0, high=2**62, identity=False)
    device: str = setting("auto", "auto, cpu, cuda or cuda:N", identity=False)
    engine: Engine = setting(
        "fast", "fast, or reference: plain torch, the same numbers up to rounding"
    )
    embed: EmbedConfig = field(default_factory=EmbedConfig)
    evolve: EvolveConfig = field(default_factory=EvolveConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)

    def _check(self) -> None:
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
        for kind in SECTIONS:
            inner, defaults = values[kind.prefix.removesuffix(".")], kind()
            for name, one in settings_of(kind).items():
                if one.added_later and inner[name] == getattr(defaults, name):
                    del inner[name]
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read nested plain values; unknown keys and wrong types are refused."""
        return cls.from_mapping(values, "config")

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Settings by the names of their options: ``model``, ``embed_layers``, ``k``.

        None is as if it were not given; a single embedding need not be a list.
        """
        return cls.from_dict(nest_options(options))

    def run_id(self, dataset_sha256: str, *extra: str) -> str:
        """Twelve hex digits that name what is computed: settings, data and numerics."""
        content = json.dumps([NUMERICS, dataset_sha256, self.to_dict(), *extra])
        return hashlib.sha256(content.encode()).hexdigest()[:12]


SECTIONS: tuple[type[Section], ...] = (
    EmbedConfig,
    EvolveConfig,
    ModelConfig,
    TrainConfig,
)
ALL_SECTIONS: tuple[type[Section], ...] = (RunConfig, *SECTIONS)


def declared() -> dict[str, Setting]:
    """Every setting by its dotted name, with its declaration."""
    return {
        f"{kind.prefix}{name}": one
        for kind in ALL_SECTIONS
        for name, one in settings_of(kind).items()
    }


def nest_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names of their options, as ``RunConfig.from_dict`` reads them."""
    names = {one.option: name for name, one in declared().items() if one.option}
    nested: dict[str, Any] = {}
    for option, value in options.items():
        if option not in names:
            raise InputError(f"a setting must be one of {[*names]} (got {option!r})")
        if value is None:
            continue
        section, dot, inner = names[option].partition(".")
        if option == "embedding" and isinstance(value, str):
            value = (value,)
        if dot:
            nested.setdefault(section, {})[inner] = value
        else:
            nested[section] = value
    return nested


def known(value: _T | None) -> _T:
    """A setting that a resolved config has."""
    assert value is not None, "the config is not resolved"
    return value
