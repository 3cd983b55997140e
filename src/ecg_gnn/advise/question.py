"""What is asked about a graph, and everything that is trained to answer it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ecg_gnn.config import CONTROLS, EMBEDDINGS, RunConfig, known
from ecg_gnn.config.identity import BASELINE, Variant, identity_control, variant_of
from ecg_gnn.data import GraphDataset
from ecg_gnn.inference.fitting import model_by_homophily
from ecg_gnn.nn import SPECIALISED, selectable, takes_evolved_graphs
from ecg_gnn.pipeline.resolve import check_embeddings, resolve
from ecg_gnn.study.table import row_name
from ecg_gnn.system.checks import InputError

DEFAULT_EMBEDDINGS = ("mlp", "bgrl", "features")
DEFAULT_KS = (10, 3)
_NUM_SPLITS = 10
# Networks are kept small: more splits and steps tell more than more channels.
_SMALL_GRAPH, _WIDE, _NARROW = 5_000, 64, 32


@dataclass(frozen=True)
class Contender:
    """A variant, and the number of neighbours per node in its evolved graph."""

    variant: Variant
    k: int | None = None
    """None for the baseline and identity, which search for no neighbours."""

    @property
    def embedding(self) -> str:
        """The evolved graphs as the user writes them."""
        return self.variant.embedding or "none"

    @property
    def setting(self) -> str:
        """What tells one candidate from another; controls have no k of their own."""
        with_k = f"{self.embedding}, k = {self.k}"
        return with_k if self.variant.name == "ecg" else self.embedding

    @property
    def label(self) -> str:
        """Its name in tables and figures."""
        return row_name(self.variant.name, self.setting)


Contenders = tuple[Contender, ...]
PLAIN = Contender(BASELINE)


def make_candidates(embeddings: Sequence[str], ks: Sequence[int]) -> Contenders:
    """Every embedding with every k; all with the first k come first."""
    return tuple(
        Contender(variant_of(embedding), k)
        for k in dict.fromkeys(ks)
        for embedding in dict.fromkeys(embeddings)
    )


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be trained."""

    steps: int
    candidates: Contenders
    """One of them is chosen; the first is the last to be dropped."""
    splits: tuple[int, ...]
    """In this order, every contender on each."""

    def controls_of(self, candidate: Contender) -> tuple[Contender, Contender]:
        """Its controls of equal size: self-loops, and random edges.

        Random graphs always have the first candidate's k.
        """
        size = len(candidate.variant.embeddings)
        random = Contender(Variant("random", ("random",) * size), self.candidates[0].k)
        return Contender(identity_control(size)), random

    @property
    def contenders(self) -> Contenders:
        """The baseline, the candidates, and controls for each of their sizes."""
        pairs = [self.controls_of(candidate) for candidate in self.candidates]
        identities, randoms = (dict.fromkeys(kind) for kind in zip(*pairs, strict=True))
        return (PLAIN, *self.candidates, *identities, *randoms)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A graph with its splits, its settings, and the plan without a time limit."""

    dataset: GraphDataset
    config: RunConfig
    whole: Plan


def make_question(
    dataset: GraphDataset,
    *,
    model: str | None = None,
    embeddings: tuple[str, ...] = DEFAULT_EMBEDDINGS,
    ks: tuple[int, ...] | None = None,
    splits: tuple[int, ...] | None = None,
    random_splits: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> Question:
    """Fill in and check everything before anything is trained.

    The graph decides what is None: a model that takes evolved graphs, the neighbours
    per node to choose from (the last is dropped first), and the first ten splits.
    """
    for name in embeddings:
        if {*CONTROLS, "none"}.intersection(name.split(",")):
            allowed = [choice for choice in EMBEDDINGS if choice != "none"]
            raise InputError(
                f"'embedding' must be one of {allowed} here, controls come by "
                f"themselves (got {name!r})"
            )
    if random_splits:
        dataset = dataset.with_random_splits(_NUM_SPLITS, seed)
    splits = splits or tuple(range(min(_NUM_SPLITS, dataset.num_splits)))
    config = RunConfig.of(
        preset="auto",
        **_network(dataset, model),
        seed=seed,
        device=device,
        dataset=dataset.name,
        splits=splits,
        random_splits=random_splits,
        embedding=embeddings,
    )
    largest_k = known(resolve(config, dataset).evolve.k)  # small on small graphs
    ks = ks or tuple(dict.fromkeys(min(k, largest_k) for k in DEFAULT_KS))
    for k in ks:
        config = replace(config, evolve=replace(config.evolve, k=k))
        resolved = resolve(config, dataset)  # refuses what does not fit
    candidates, steps = make_candidates(embeddings, ks), known(resolved.train.steps)
    whole = Plan(steps=steps, candidates=candidates, splits=splits)
    check_embeddings([each.variant for each in whole.contenders], dataset, resolved, {})
    return Question(dataset=dataset, config=resolved, whole=whole)


def _network(dataset: GraphDataset, model: str | None) -> dict[str, Any]:
    """The network of ``fit``, but for its width."""
    name = model or model_by_homophily(dataset, dataset.split(0))
    takes = [m for m in selectable("benchmark") if takes_evolved_graphs("benchmark", m)]
    if name not in takes:
        raise InputError(
            f"'model' must be one of {takes}, which take evolved graphs (got {name!r})"
        )
    if name in SPECIALISED:  # it has a width of its own
        return {"model": name}
    small = dataset.num_nodes <= _SMALL_GRAPH
    return {"model": name, "hidden": _WIDE if small else _NARROW}
