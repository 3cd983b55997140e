"""What is asked about a graph, filled in and checked before anything is trained."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from ecg_gnn.config import CONTROLS, EMBEDDINGS, RunConfig, known
from ecg_gnn.config.choices import ADVISED_EMBEDDINGS, ADVISED_KS
from ecg_gnn.config.classify_settings import check_model, selectable
from ecg_gnn.config.identity import variant_of
from ecg_gnn.data import GraphDataset
from ecg_gnn.ensemble.networks import Shape
from ecg_gnn.nn import traits_of
from ecg_gnn.pipeline.resolve import check_embeddings, choose_model, resolve
from ecg_gnn.system.checks import InputError

_NUM_SPLITS = 10
_EMBED_STEPS = 150  # as in the search of ``fit``
# Networks are kept small: more folds and splits tell more than more channels.
_SMALL_GRAPH, _WIDE, _NARROW = 5_000, 64, 32
_MIXING = ("gcn", "gat", "gt")
"""Models for which a small GCN stands in; for all others a small SAGE does."""


class Candidate(NamedTuple):
    """An embedding, and how many neighbours per node its graph has."""

    embedding: str
    k: int

    @property
    def label(self) -> str:
        return f"{self.embedding} (k = {self.k})"


@dataclass(frozen=True, kw_only=True)
class Question:
    """A graph with its splits, the network, and the evolved graphs to choose from."""

    dataset: GraphDataset
    config: RunConfig
    shape: Shape
    candidates: tuple[Candidate, ...]
    splits: tuple[int, ...]


def make_question(
    dataset: GraphDataset,
    *,
    model: str | None = None,
    embeddings: tuple[str, ...] = ADVISED_EMBEDDINGS,
    ks: tuple[int, ...] | None = None,
    splits: tuple[int, ...] | None = None,
    random_splits: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> Question:
    """Fill in what is None by the graph, with the defaults of ``fit``, and check it."""
    for name in embeddings:
        if "," in name or name in {*CONTROLS, "none"}:
            allowed = [one for one in EMBEDDINGS if one not in {*CONTROLS, "none"}]
            raise InputError(
                f"'embedding' must be one of {allowed} here, one per --embedding; "
                f"controls are added automatically (got {name!r})"
            )
    if random_splits:
        dataset = dataset.with_random_splits(_NUM_SPLITS, seed)
    splits = splits or tuple(range(min(_NUM_SPLITS, dataset.num_splits)))
    model = choose_model(model, dataset, dataset.split(0))
    check_model(model, "benchmark")
    names = selectable("benchmark")
    takes = [m for m in names if traits_of("benchmark", m).several_graphs]
    if model not in takes:
        raise InputError(
            f"'model' must be one of {takes}, which take evolved graphs (got {model!r})"
        )
    config = RunConfig.of(
        preset="auto",
        model=model,
        seed=seed,
        device=device,
        dataset=dataset.name,
        splits=splits,
        random_splits=random_splits,
        embedding=embeddings,
        embed_steps=_EMBED_STEPS,
    )
    largest_k = known(resolve(config, dataset).evolve.k)  # small on small graphs
    ks = ks or tuple(min(k, largest_k) for k in ADVISED_KS)
    for k in ks:
        config = replace(config, evolve=replace(config.evolve, k=k))
        resolved = resolve(config, dataset)  # refuses what does not fit
    check_embeddings([variant_of(name) for name in embeddings], dataset, resolved, {})
    pairs = [Candidate(name, k) for name in embeddings for k in ks]
    return Question(
        dataset=dataset,
        config=resolved,
        shape=Shape(
            convolution="gcn" if model in _MIXING else "sage",
            hidden=_WIDE if dataset.num_nodes <= _SMALL_GRAPH else _NARROW,
        ),
        candidates=tuple(dict.fromkeys(pairs)),
        splits=splits,
    )
