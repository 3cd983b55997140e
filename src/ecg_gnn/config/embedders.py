"""The embedders of step 1, declared once: what they read and what they may see.

Checks, help texts, the names of trainings, cache keys and the choice of what can be
kept for new nodes follow from this table. Nothing here needs torch: an embedder's code
is imported when one is built (``pipeline.workspace``).
"""

from dataclasses import dataclass

from ecg_gnn.config.classify_settings import ModelConfig, TrainConfig
from ecg_gnn.config.setting import settings_of
from ecg_gnn.system.checks import check_choice

PRECOMPUTED, OWN_PREFIX = "precomputed:", "own:"
"""How the names of embeddings from a file, and of a caller's own embedders, begin."""
NONE = "none"
"""The name that stands for no evolved graph at all."""


@dataclass(frozen=True, kw_only=True)
class EmbedderEntry:
    """What is known of an embedder by its name.

    Attributes:
        help: What it reads, for ``--help``.
        place: Its class, ``module:name`` below ``ecg_gnn.embed``.
        reads: Dotted names of the settings that change its numbers.
        uses_labels: Whether it learns from training labels, so that splits differ.
        leaks: Whether it reads test labels: an upper bound, never ranked.
        is_control: Whether it is there to be compared with.
        can_be_kept: Whether it can embed nodes that come later.
        parts: The embedders whose rows are joined, where it is made of others.
        has_neighbours: Whether step 2 finds any for it.
        evolved_from: The embedder whose evolved graph it is trained on, if on any.
    """

    help: str
    place: str
    reads: frozenset[str] = frozenset()
    uses_labels: bool = False
    leaks: bool = False
    is_control: bool = False
    can_be_kept: bool = False
    parts: tuple[str, ...] = ()
    has_neighbours: bool = True
    evolved_from: str | None = None


def _model_and_train() -> frozenset[str]:
    """Every setting of a network that is not for the final classifier alone."""
    return frozenset(
        f"{kind.prefix}{name}"
        for kind in (ModelConfig, TrainConfig)
        for name, one in settings_of(kind).items()
        if not one.last_only
    )


_MLP = frozenset(
    {
        "embed.layers",
        "embed.hidden",
        "embed.steps",
        "embed.lr",
        "embed.cross_fit",
        "embed.cross_fit_models",
        "model.dropout",
        "train.weight_decay",
        "train.precision",
    }
)
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
        place="combine:ConcatEmbedder",
        reads=_MLP | _BGRL,
        uses_labels=True,
        can_be_kept=True,
        parts=("mlp", "bgrl"),
    ),
    "mlp-gnn": EmbedderEntry(
        help="a model trained on the MLP's graph",
        place="trained:TrainedModelEmbedder",
        reads=_MLP | _model_and_train(),
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
_OWN = EmbedderEntry(
    help="an object of the caller",
    place="",
    reads=frozenset({"embed.cross_fit", "embed.cross_fit_models"}),
)

CONTROLS = tuple(name for name, entry in EMBEDDERS.items() if entry.is_control)
_WEAK = tuple(name for name in EMBEDDERS if name not in CONTROLS)
EMBEDDINGS = (*_WEAK, f"{PRECOMPUTED}FILE", NONE)
"""What may be asked for beside the controls."""
KEPT_EMBEDDINGS = (
    *(name for name, entry in EMBEDDERS.items() if entry.can_be_kept),
    NONE,
)
"""Those that a model which is kept can have: they can embed new nodes."""
EMBEDDING_HELP = (
    "Weak classifier: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in _WEAK)
    + f", {PRECOMPUTED}FILE (.npy, .npz or .safetensors, one row per node), {NONE} "
    "(baseline only); or a control: "
    + ", ".join(f"{name} ({EMBEDDERS[name].help})" for name in CONTROLS)
)


def entry_of(name: str) -> EmbedderEntry:
    """What is known of one embedding by its name; of a caller's own, little."""
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
        if not part.startswith((PRECOMPUTED, OWN_PREFIX)):
            check_choice("embedding", part, allowed)
