"""What is trained: the plain network, ECG in several ways, and controls."""

from collections.abc import Sequence
from dataclasses import dataclass

from ecg_gnn.config.variants import BASELINE, Variant, identity_control, variant_of
from ecg_gnn.study.table import row_name


@dataclass(frozen=True)
class Contender:
    """A variant, and how many neighbours each node has in its evolved graph."""

    variant: Variant
    k: int | None = None
    """None where there is nothing to find: baseline and identity"""

    @property
    def is_candidate(self) -> bool:
        """Whether it may be recommended; controls and the baseline may not."""
        return self.variant.name == "ecg"

    @property
    def embedding(self) -> str:
        """The evolved graphs as the user writes them."""
        return self.variant.embedding or "none"

    @property
    def setting(self) -> str:
        """What makes one candidate differ from another."""
        return f"{self.embedding}, k = {self.k}"

    @property
    def label(self) -> str:
        """The contender as tables and figures call it."""
        shown = self.setting if self.is_candidate else self.variant.embedding
        return row_name(self.variant.name, shown)

    @property
    def graph_label(self) -> str:
        """Its evolved graph as tables and figures call it."""
        return f"G_ECG ({self.setting if self.is_candidate else self.embedding})"


PLAIN = Contender(BASELINE)


def make_candidates(
    embeddings: Sequence[str], ks: Sequence[int]
) -> tuple[Contender, ...]:
    """Every embedding with every k; all with the first k come first."""
    return tuple(
        Contender(variant_of(embedding), k)
        for k in dict.fromkeys(ks)
        for embedding in dict.fromkeys(embeddings)
    )


def identity_of(candidate: Contender) -> Contender:
    """The control of equal size whose evolved graphs are self-loops."""
    return Contender(identity_control(len(candidate.variant.embeddings)))


def random_of(candidate: Contender, k: int | None) -> Contender:
    """The control of equal size whose evolved graphs are drawn."""
    names = ["random"] * len(candidate.variant.embeddings)
    return Contender(variant_of(",".join(names)), k)


def with_controls(candidates: Sequence[Contender]) -> tuple[Contender, ...]:
    """The baseline, the candidates, and controls for each of their sizes.

    Random graphs have the first candidate's k.
    """
    k = candidates[0].k
    identities = dict.fromkeys(identity_of(each) for each in candidates)
    randoms = dict.fromkeys(random_of(each, k) for each in candidates)
    return (PLAIN, *candidates, *identities, *randoms)
