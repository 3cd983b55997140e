"""The embedders by name: what each reads, whether it needs labels, how it is kept."""

from dataclasses import dataclass, replace

from ecg_gnn.config.classify_settings import ModelConfig, TrainConfig
from ecg_gnn.config.setting import settings_of
from ecg_gnn.system.checks import check_choice

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
    *("embed.layers", "embed.hidden", "embed.steps", "embed.lr", "embed.dropout"),
    *("model.dropout", "train.weight_decay", "train.precision"),  # see canonical
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
    "structure": EmbedderEntry(
        help="degrees around a node", place="from_edges:StructureEmbedder"
    ),
    "position": EmbedderEntry(
        help="where in the graph a node is", place="from_edges:PositionEmbedder"
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
    for part in parts:
        asked = part.removeprefix(AS_INPUT)
        allowed = [e for e in (*EMBEDDINGS, *CONTROLS) if e != NONE or len(parts) == 1]
        if asked != part:  # vectors of a control say nothing, or give labels away
            allowed = [f"{AS_INPUT}{name}" for name in _WEAK]
        if not asked.startswith((PRECOMPUTED, OWN_PREFIX)):
            check_choice("embedding", part, allowed)
