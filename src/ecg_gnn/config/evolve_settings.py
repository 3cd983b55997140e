"""The settings of steps 1 and 2: how nodes are embedded, and how a graph evolves."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ecg_gnn.config.classify_settings import (
    DEEPEST,
    LONGEST,
    WIDEST,
    ModelConfig,
    TrainConfig,
)
from ecg_gnn.config.setting import Section, setting, settings_of
from ecg_gnn.system.checks import InputError, check_choice

PRECOMPUTED, OWN_PREFIX = "precomputed:", "own:"
"""How the names of embeddings from a file, and of a caller's own embedders, begin."""
NONE = "none"
"""The name that stands for no evolved graph at all."""
AS_INPUT = "input:"
"""How a part begins whose vectors are further features, in place of a graph."""


@dataclass(frozen=True, kw_only=True)
class EmbedderEntry:
    """What is known of an embedder by its name."""

    help: str  # what it reads, for --help
    place: str  # its class, module:name below ecg_gnn.embed
    reads: frozenset[str] = frozenset()  # settings that change its numbers, dotted
    uses_labels: bool = False  # whether it learns from them, so that splits differ
    leaks: bool = False  # whether it reads test labels: an upper bound, never ranked
    is_control: bool = False  # whether it is there to be compared with
    can_be_kept: bool = False  # whether it can embed nodes that come later
    parts: tuple[str, ...] = ()  # the embedders whose rows are joined, if any
    has_neighbours: bool = True  # whether step 2 finds any for it
    evolved_from: str | None = None  # on whose evolved graph it is trained, if on any


_MODEL_AND_TRAIN = frozenset(  # what is not for the final classifier alone
    f"{kind.prefix}{name}"
    for kind in (ModelConfig, TrainConfig)
    for name, one in settings_of(kind).items()
    if not one.last_only
)
_CROSS_FIT = frozenset({"embed.cross_fit", "embed.cross_fit_models"})
_MLP = _CROSS_FIT | {
    *("embed.layers", "embed.hidden", "embed.steps", "embed.lr"),
    *("model.dropout", "train.weight_decay", "train.precision"),
}
_BGRL = frozenset({"embed.hidden", "embed.steps", "embed.bgrl_lr", "train.precision"})

EMBEDDERS = {
    "mlp": EmbedderEntry(
        help="labels, no graph",
        place="mlp:MLPEmbedder",
        reads=_MLP,
        uses_labels=True,
        can_be_kept=True,
    ),
    "bgrl": EmbedderEntry(
        help="graph, no labels",
        place="bgrl:BGRLEmbedder",
        reads=_BGRL,
        can_be_kept=True,
    ),
    "mlp+bgrl": EmbedderEntry(
        help="both, concatenated",
        place="plain:ConcatEmbedder",
        reads=_MLP | _BGRL,
        uses_labels=True,
        can_be_kept=True,
        parts=("mlp", "bgrl"),
    ),
    "mlp-gnn": EmbedderEntry(
        help="a model trained on the MLP's graph",
        place="trained:TrainedModelEmbedder",
        reads=_MLP | _MODEL_AND_TRAIN,
        uses_labels=True,
        evolved_from="mlp",
    ),
    "features": EmbedderEntry(
        help="the features themselves", place="plain:FeaturesEmbedder", can_be_kept=True
    ),
    "identity": EmbedderEntry(
        help="self-loops only",
        place="plain:IdentityControl",
        is_control=True,
        has_neighbours=False,
    ),
    "random": EmbedderEntry(
        help="random nodes", place="plain:RandomControl", is_control=True
    ),
    "oracle": EmbedderEntry(
        help="sees test labels",
        place="plain:OracleControl",
        uses_labels=True,
        leaks=True,
        is_control=True,
    ),
}
_FROM_FILE = EmbedderEntry(help="from a file of the caller", place="")
_OWN = EmbedderEntry(help="an object of the caller", place="", reads=_CROSS_FIT)

CONTROLS = tuple(name for name, entry in EMBEDDERS.items() if entry.is_control)
_WEAK = tuple(name for name in EMBEDDERS if name not in CONTROLS)
EMBEDDINGS = (*_WEAK, f"{PRECOMPUTED}FILE", NONE)
"""What may be asked for beside the controls."""
KEPT_EMBEDDINGS = (*(n for n, entry in EMBEDDERS.items() if entry.can_be_kept), NONE)
"""Those that a model which is kept can have: they can embed new nodes."""
EMBEDDING_HELP = (
    "Weak classifier: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in _WEAK)
    + f", {PRECOMPUTED}FILE (.npy, .npz or .safetensors, one row per node), {NONE} "
    "(baseline only); or a control: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in CONTROLS)
    + f", {AS_INPUT}NAME (the embedding as further features, without new edges)"
)


def entry_of(name: str) -> EmbedderEntry:
    """What is known of one embedding by its name; of a caller's own, little."""
    if name.startswith(AS_INPUT):
        entry = entry_of(name.removeprefix(AS_INPUT))
        reads = entry.reads - {"embed.cross_fit_models"}  # says whose neighbours
        return replace(entry, has_neighbours=False, can_be_kept=False, reads=reads)
    return EMBEDDERS.get(name, _OWN if name.startswith(OWN_PREFIX) else _FROM_FILE)


def is_control(name: str) -> bool:
    """Whether an embedding's name is one of the controls."""
    return name in CONTROLS


def reads_labels(name: str) -> bool:
    """Whether any part of an embedding is trained on labels, as its name says.

    Examples:
        >>> [reads_labels(name) for name in ("mlp-gnn", "bgrl", "bgrl,mlp+bgrl")]
        [True, False, True]
    """
    entries = [entry_of(part) for part in name.split(",")]
    return any(entry.uses_labels and not entry.leaks for entry in entries)


def check_embedding(name: str) -> None:
    """One embedding, or several that a comma joins; ``none`` joins nothing."""
    parts = name.split(",")
    allowed = [*EMBEDDINGS, *CONTROLS]
    if len(parts) > 1:
        allowed.remove(NONE)
    for part in parts:
        asked = part.removeprefix(AS_INPUT)
        if asked.startswith((PRECOMPUTED, OWN_PREFIX)):
            continue
        if asked != part:  # vectors of a control say nothing, or give labels away
            check_choice("embedding", part, [f"{AS_INPUT}{name}" for name in _WEAK])
        else:
            check_choice("embedding", part, allowed)


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
    cross_fit_models: Literal["own", "all"] = setting(
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
            "auto": lambda nodes: max(1, min(10, nodes // 10, nodes - 1)),
        },
    )
    self_loops: Literal["exclude", "within_k", "add", "only"] = setting(
        "exclude",
        "Is a node its own neighbour? exclude: never; within_k: always, as one of the "
        "k (the paper's MLP graphs); add: on top of the k; only: nobody else",
        read=lambda text: text.replace("-", "_"),  # within-k
    )
    similarity: Literal["cosine", "dot", "euclidean"] = setting(
        "cosine", "What nearest means: cosine, dot or euclidean"
    )
    symmetric: bool = setting(
        False, "Add every evolved edge reversed, too", flag="--symmetric/--directed"
    )
    weights: Literal["uniform", "similarity"] = setting(
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
    knn: Literal["auto", "exact", "ivf", "hnsw"] = setting(
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
