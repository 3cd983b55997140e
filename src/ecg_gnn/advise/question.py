"""What is asked about a graph, and the nodes that answer: the known ones, in folds."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.config import CONTROLS, EMBEDDINGS, RunConfig, known, reads_labels
from ecg_gnn.config.classify_settings import (
    ADVISED_EMBEDDINGS,
    ADVISED_KS,
    check_model,
    selectable,
)
from ecg_gnn.config.identity import variant_of
from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.ensemble.members import Fold, Job, make_folds
from ecg_gnn.ensemble.network_members import NetworkMember, fit_networks
from ecg_gnn.ensemble.networks import NetworkInputs, Shape
from ecg_gnn.ensemble.weighted import hidden_target
from ecg_gnn.nn import traits_of
from ecg_gnn.pipeline import Workspace, embed
from ecg_gnn.pipeline.method import evolve_embedding
from ecg_gnn.pipeline.resolve import check_embeddings, choose_model, resolve
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import Progress

_NUM_SPLITS = 10
_EMBED_STEPS = 150  # as in the search of ``fit``
# Networks are kept small: more folds and splits tell more than more channels.
_SMALL_GRAPH, _WIDE, _NARROW = 5_000, 64, 32
_MIXING = ("gcn", "gat", "gt")
"""Models for which a small GCN stands in; for all others a small SAGE does."""
# On larger graphs the networks of all folds do not share a batch: their states would
# take too much memory.
_SHARED_NODES = 50_000
_FOLDS = 5
Array = NDArray[np.float64]


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


@dataclass(eq=False)
class KnownNodes:
    """Training and validation nodes of one split, dealt into folds.

    Nothing made here reads the label of a test node, and nothing that is said of a
    held-out node reads a label of its fold.
    """

    dataset: GraphDataset
    index: int
    config: RunConfig
    workspace: Workspace
    inputs: GraphInputs
    _embedded: dict[str, list[Tensor]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Hide the labels of test nodes, and deal the others."""
        self.split = self.dataset.split(self.index)
        self.mask = (self.split.train_mask | self.split.val_mask).numpy()
        y, classes = self.dataset.y.numpy(), self.dataset.num_classes
        self.target, _ = hidden_target(y, classes, self.mask)
        self.nodes = np.flatnonzero(self.mask)
        num_folds = max(2, min(_FOLDS, len(self.nodes) // 4))
        folds = make_folds(self.target, self.nodes, num_folds, self.config.seed)
        self.folds: dict[int, Fold] = dict(enumerate(folds))

    def vectors(self, name: str) -> list[Tensor]:
        """Embedded nodes ``[N, D]``, of one model for all folds.

        What reads labels is trained anew for each, without the labels of the fold.
        """
        if name not in self._embedded:
            splits = [self.split]
            if reads_labels(name):
                splits = [self._without(fold) for fold in self.folds.values()]
            self._embedded[name] = [
                embed(name, self.dataset, split, self.config, self.workspace)
                for split in splits
            ]
        return self._embedded[name]

    def _without(self, fold: Fold) -> Split:
        seen = torch.from_numpy(self.target.knowing(fold.train).known)
        train, val = self.split.train_mask & seen, self.split.val_mask & seen
        if any(len(self.dataset.y[part].unique()) < 2 for part in (train, val)):
            train = val = seen  # too few nodes to tell apart learning and stopping
        return replace(self.split, train_mask=train, val_mask=val)

    def evolved(self, candidate: Candidate) -> list[Tensor]:
        """Evolved edges ``[2, E]``, one graph or one for each fold."""
        name, config = candidate.embedding, self.config
        config = replaced(config, {"evolve.k": candidate.k})
        around = self.dataset, self.split, config, self.workspace
        return [
            evolve_embedding(z, name, *around).edge_index for z in self.vectors(name)
        ]

    def _inputs(self, variant: str, candidate: Candidate | None) -> list[GraphInputs]:
        """What the network reads: the same in all folds, or for each its own."""
        if variant == "identity":
            loops = torch.arange(self.inputs.num_nodes).expand(2, -1)
            return [replace(self.inputs, evolved=loops)]
        if candidate is None or variant == "baseline":
            return [self.inputs]
        if variant == "ecg":
            return [replace(self.inputs, evolved=e) for e in self.evolved(candidate)]
        scaled = [
            z / z.std().clamp_min(1e-6) for z in self.vectors(candidate.embedding)
        ]
        return [self.inputs.with_columns(z.float().cpu().numpy()) for z in scaled]

    def train(
        self,
        variant: str,
        shape: Shape,
        candidate: Candidate | None = None,
        progress: Progress | None = None,
    ) -> Array:
        """Shares of classes that the network of each fold gives all nodes.

        They are ``[folds, N, C]``. A variant is ``baseline``, ``ecg``, ``identity``
        (the same network with self-loops for evolved edges) or ``embedding`` (its
        vectors as further features, without new edges).
        """
        inputs, shares = self._inputs(variant, candidate), []
        groups = [self.folds]
        if len(inputs) > 1 or self.inputs.num_nodes > _SHARED_NODES:
            groups = [{number: fold} for number, fold in self.folds.items()]
        metric = self.dataset.metric.replace("_", "-")
        for place, folds in enumerate(groups):
            read = inputs[place % len(inputs)]
            stopped = partial(_tell, progress, count(1), shape.steps)
            job = Job(read, self.target, folds, metric, math.inf, stopped)
            member, _ = fit_networks(shape, self.config.seed + self.index, job)
            assert isinstance(member, NetworkMember)
            with torch.no_grad():  # each network alone; the member gives their mean
                logits = member.batches[0].eval()(NetworkInputs.of(read, shape), None)
            shares.append(logits.softmax(dim=-1).numpy())
        return np.concatenate(shares)

    def held_out(self, shares: Array) -> Array:
        """Shares of every known node by the network that did not learn it."""
        found = np.zeros(shares.shape[1:])
        for number, fold in self.folds.items():
            found[fold.held_out] = shares[number, fold.held_out]
        return found


def _tell(progress: Progress | None, done: Iterator[int], steps: int) -> bool:
    """Asked after every step; it is the progress that ends it, where time is short."""
    if progress is not None:
        progress(next(done), steps, math.nan)
    return False
