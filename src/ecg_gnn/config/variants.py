"""Variants: which models one run compares, each the input graph beside evolved ones."""

import hashlib
from dataclasses import dataclass

from ecg_gnn.config.embedders import is_control


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
