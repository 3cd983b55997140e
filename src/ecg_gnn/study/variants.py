"""Which models one run compares."""

import hashlib
from dataclasses import dataclass

from ecg_gnn.config import EmbedConfig, ModelConfig, RunConfig, is_control
from ecg_gnn.nn import SPECIALISED, takes_evolved_graphs
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True)
class Variant:
    """One row of a run: the input graph beside these evolved graphs."""

    name: str
    embeddings: tuple[str, ...] = ()

    @property
    def embedding(self) -> str | None:
        """The evolved graphs as the user writes them."""
        return ",".join(self.embeddings) or None

    def file_name(self, split: int) -> str:
        """A name for this variant's record on one split."""
        text = "-".join([self.name, *self.embeddings])
        safe = "".join(c if c.isalnum() or c in "-+" else "_" for c in text)
        if safe != text:  # a path: two of them may look alike, or be too long for one
            safe = f"{safe[:60]}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return f"{safe}-split{split}"


BASELINE = Variant("baseline")


def identity_control(num_evolved: int) -> Variant:
    """As many evolved graphs as the variant it controls, each of self-loops only."""
    return Variant("identity", ("identity",) * num_evolved)


def variant_of(embedding: str) -> Variant:
    """The variant of an embedding as the user writes it: commas join graphs."""
    parts = tuple(embedding.split(","))
    if "oracle" in parts:  # whatever else is beside it, test labels were seen
        return Variant("oracle", parts)
    alike = is_control(parts[0]) and len(set(parts)) == 1
    return Variant(parts[0] if alike else "ecg", parts)


def evolves(model: ModelConfig) -> bool:
    """Whether a model has room for evolved graphs; one that has not is a baseline."""
    return takes_evolved_graphs(model.backbone, model.name)


def choose_variants(config: RunConfig) -> list[Variant]:
    """Baseline, one variant per embedding, and identity controls of equal size.

    A model that reads no graph, or the input graph only, is a baseline alone, and so
    is everything with the embedding ``none``.

    Raises:
        InputError: For evolved graphs asked of a model that reads the input graph only.
    """
    names = [name for name in dict.fromkeys(config.embed.names) if name != "none"]
    if not evolves(config.model):
        _check_unasked(config)
        names = []
    chosen = [variant_of(name) for name in names]
    sizes = dict.fromkeys(len(variant.embeddings) for variant in chosen)
    controls = [identity_control(size) for size in sizes]
    return [BASELINE, *(v for v in chosen if v not in controls), *controls]


def _check_unasked(config: RunConfig) -> None:
    """Refuse embeddings that a specialised model has no place for."""
    model, names = config.model.name, config.embed.names
    if model in SPECIALISED and names not in (("none",), EmbedConfig().names):
        raise InputError(
            f"'embedding' must be one of ['none'] for the model {model!r}, which reads "
            f"the input graph only (got {list(names)})"
        )
