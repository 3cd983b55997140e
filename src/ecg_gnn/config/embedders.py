"""Steps 1 and 2: the embedders by name, and how nodes are embedded and a graph evolves.

Of each embedder: what it reads, whether it needs labels, how it is kept.
"""

from dataclasses import dataclass, replace
from typing import Literal

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
    place: str = ""  # its class in ecg_gnn.embed; of several parts theirs
    reads: frozenset[str] = frozenset()  # settings that change its numbers, dotted
    uses_labels: bool = False  # whether it learns from them, so that splits differ
    leaks: bool = False  # whether it reads test labels: an upper bound, never ranked
    is_control: bool = False  # whether it is there to be compared with
    can_be_kept: bool = False  # whether it can embed nodes that come later
    parts: tuple[str, ...] = ()  # the embedders whose rows are joined, if any
    evolved_from: str | None = None  # on whose evolved graph it is trained, if on any


_MODEL_AND_TRAIN = frozenset(  # what is not for the final classifier alone
    f"{kind.prefix}{name}"
    for kind in (ModelConfig, TrainConfig)
    for name, one in settings_of(kind).items()
    if not one.last_only
)
_CROSS_FIT = frozenset({"embed.cross_fit", "embed.cross_fit_models"})
_MLP = _CROSS_FIT | {
    *("embed.layers", "embed.hidden", "embed.steps", "embed.lr", "embed.dropout"),
    *("model.dropout", "train.weight_decay", "train.precision"),  # see canonical
}
_BGRL = frozenset({"embed.hidden", "embed.steps", "embed.bgrl_lr", "train.precision"})

EMBEDDERS = {
    "mlp": EmbedderEntry(
        help="labels, no graph",
        place="MLPEmbedder",
        reads=_MLP,
        uses_labels=True,
        can_be_kept=True,
    ),
    "bgrl": EmbedderEntry(
        help="graph, no labels", place="BGRLEmbedder", reads=_BGRL, can_be_kept=True
    ),
    "mlp+bgrl": EmbedderEntry(
        help="both, concatenated",
        reads=_MLP | _BGRL,
        uses_labels=True,
        can_be_kept=True,
        parts=("mlp", "bgrl"),
    ),
    "mlp-gnn": EmbedderEntry(
        help="a model trained on the MLP's graph",
        place="TrainedModelEmbedder",
        reads=_MLP | _MODEL_AND_TRAIN,
        uses_labels=True,
        evolved_from="mlp",
    ),
    "features": EmbedderEntry(
        help="the features themselves", place="FeaturesEmbedder", can_be_kept=True
    ),
    "structure": EmbedderEntry(help="degrees around a node", place="StructureEmbedder"),
    "position": EmbedderEntry(
        help="where in the graph a node is", place="PositionEmbedder"
    ),
    "identity": EmbedderEntry(
        help="self-loops only", place="IdentityControl", is_control=True
    ),
    "random": EmbedderEntry(
        help="random nodes", place="RandomControl", is_control=True
    ),
    "oracle": EmbedderEntry(
        help="sees test labels",
        place="OracleControl",
        uses_labels=True,
        leaks=True,
        is_control=True,
    ),
}

CONTROLS = tuple(name for name, entry in EMBEDDERS.items() if entry.is_control)
_WEAK = tuple(name for name in EMBEDDERS if name not in CONTROLS)
EMBEDDINGS = (*_WEAK, f"{PRECOMPUTED}FILE", NONE)
"""Embeddings besides the controls."""
KEPT_EMBEDDINGS = (*(n for n, entry in EMBEDDERS.items() if entry.can_be_kept), NONE)
"""Those that a saved model can use: they can embed new nodes."""
EMBEDDING_HELP = (
    "Weak classifier: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in _WEAK)
    + f", {PRECOMPUTED}FILE (.npy, .npz or .safetensors, one row per node), {NONE} "
    "(baseline only); or a control: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in CONTROLS)
    + f", {AS_INPUT}NAME (the embedding as further features, without new edges)"
)


def entry_of(name: str) -> EmbedderEntry:
    """An embedding's entry by its name; of an embedder of one's own little is known."""
    if name.startswith(AS_INPUT):
        entry = entry_of(name.removeprefix(AS_INPUT))
        reads = entry.reads - {"embed.cross_fit_models"}  # says whose neighbours
        return replace(entry, can_be_kept=False, reads=reads)
    reads = _CROSS_FIT if name.startswith(OWN_PREFIX) else frozenset()
    return EMBEDDERS.get(name, EmbedderEntry(help="your own embedder", reads=reads))


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
    for part in parts:
        asked = part.removeprefix(AS_INPUT)
        allowed = [e for e in (*EMBEDDINGS, *CONTROLS) if e != NONE or len(parts) == 1]
        if asked != part:  # vectors of a control say nothing, or give labels away
            allowed = [f"{AS_INPUT}{name}" for name in _WEAK]
        if not asked.startswith((PRECOMPUTED, OWN_PREFIX)):
            check_choice("embedding", part, allowed)


@dataclass(frozen=True, kw_only=True)
class EmbedConfig(Section, prefix="embed."):
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
        between=(1, DEEPEST),
        presets={"quick": 2},
    )
    hidden: int | None = setting(
        None,
        "Width of the MLP; BGRL's encoder is (width, width / 2)",
        option="embed_hidden",
        between=(2, WIDEST),
        presets={"quick": 64},
    )
    steps: int | None = setting(
        None,
        "Training steps of the weak classifier (as many as the classifier's)",
        option="embed_steps",
        between=(1, LONGEST),
        like="train.steps",
    )
    lr: float | None = setting(
        None,
        "Learning rate of the MLP (the classifier's)",
        option="embed_lr",
        between=(0, None),
        like="train.lr",
    )
    dropout: float | None = setting(
        None,
        "Dropout rate of the MLP; the paper's is 0.2",
        option="embed_dropout",
        between=(0, 0.99),
        presets={"quick": 0.2},
        added_later=True,
    )
    bgrl_lr: float = setting(
        1e-3, "Peak learning rate of BGRL", option=None, between=(0, None)
    )
    cross_fit: int = setting(
        0,
        "Train a weak classifier that reads labels K times, each time without one of K "
        "parts of the nodes. A node's neighbours are found with the model that never "
        "saw its label, so training and test nodes get similar ones. Try 5; 0 is off",
        metavar="K",
        between=(2, 100),
        off=0,
        tag="cross-fitted",
        meaning="a node's neighbours come from a model that never saw its label; their "
        "own neighbours, over a second evolved layer, may know it",
        added_later=True,
    )
    cross_fit_models: Literal["own", "all"] = setting(
        "own",
        "With --cross-fit, which fold models find neighbours for non-training nodes: "
        "own (only that of the node's fold, as for training nodes), or all (each finds "
        "a share of the k)",
        tag="by all models",
        meaning="nodes outside training get neighbours from all such models",
        added_later=True,
    )

    def _check(self) -> None:
        if not self.names:
            raise InputError("'embed.names' must name an embedding (got none)")
        for name in self.names:
            check_embedding(name)
        if not self.cross_fit and self.cross_fit_models != "own":
            raise InputError(
                "'cross_fit_models' must be 'own' without 'cross_fit' (5, say): there "
                f"is one model alone (got {self.cross_fit_models!r})"
            )


@dataclass(frozen=True, kw_only=True)
class EvolveConfig(Section, prefix="evolve."):
    """Step 2: from embeddings to the evolved graph.

    Examples:
        >>> EvolveConfig(k=3, self_loops="within_k").k
        3
    """

    k: int | None = setting(
        None,
        "Neighbours per node in the evolved graph",
        between=(1, None),
        presets={
            "quick": 10,
            "paper": 3,
            "auto": lambda nodes: max(1, min(10, nodes // 10, nodes - 1)),
        },
    )
    self_loops: Literal["exclude", "within_k", "add", "only"] = setting(
        "exclude",
        "Is a node its own neighbour? exclude: never; within_k: yes, as one of the k "
        "(the paper's MLP graphs); add: yes, in addition to the k; only: its only one",
        read=lambda text: text.replace("-", "_"),  # within-k
    )
    similarity: Literal["cosine", "dot", "euclidean"] = setting(
        "cosine", "What nearest means: cosine, dot or euclidean"
    )
    symmetric: bool = setting(
        False, "Also add every evolved edge reversed", flag="--symmetric/--directed"
    )
    weights: Literal["uniform", "similarity"] = setting(
        "uniform",
        "Weight of an evolved edge in sums, means and attention: uniform, or "
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
        "that if it does not take too long)",
        tag="approximate",
        meaning="neighbours are found by an index, which misses some",
        added_later=True,
    )
