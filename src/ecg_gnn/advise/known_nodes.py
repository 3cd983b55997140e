"""The known nodes of one split in folds, and graphs that no held-out label reached."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.advise.question import Candidate
from ecg_gnn.config import RunConfig, reads_labels
from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.ensemble.folds import Fold, make_folds
from ecg_gnn.ensemble.inputs import GraphInputs
from ecg_gnn.ensemble.job import Job
from ecg_gnn.ensemble.network_members import NetworkMember, fit_networks
from ecg_gnn.ensemble.networks import NetworkInputs, Shape
from ecg_gnn.ensemble.weighted import hidden_target
from ecg_gnn.pipeline import Workspace, embed
from ecg_gnn.pipeline.method import evolve_embedding
from ecg_gnn.train import Progress

# On larger graphs the networks of all folds do not share a batch: their states would
# take too much memory.
_SHARED_NODES = 50_000
Array = NDArray[np.float64]


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
    num_folds: int = 5
    _embedded: dict[str, list[Tensor]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Hide the labels of test nodes, and deal the others."""
        self.split = self.dataset.split(self.index)
        self.mask = (self.split.train_mask | self.split.val_mask).numpy()
        y, classes = self.dataset.y.numpy(), self.dataset.num_classes
        self.target, _ = hidden_target(y, classes, self.mask)
        self.nodes = np.flatnonzero(self.mask)
        num_folds = max(2, min(self.num_folds, len(self.nodes) // 4))
        folds = make_folds(self.target, self.nodes, num_folds, self.config.seed)
        self.folds: dict[int, Fold] = dict(enumerate(folds))

    def groups(self, candidate: Candidate | None = None) -> list[dict[int, Fold]]:
        """Folds that share a graph: all, or each alone where it reads labels."""
        alone = candidate is not None and reads_labels(candidate.embedding)
        if alone or self.inputs.num_nodes > _SHARED_NODES:
            return [{number: fold} for number, fold in self.folds.items()]
        return [self.folds]

    def embeddings(self, candidate: Candidate) -> list[dict[str, Tensor]]:
        """Vectors of all nodes ``[N, D]`` by embedding, for each group of folds."""
        names = candidate.embedding.split(",")
        vectors = {name: self._vectors(name) for name in names}
        return [
            {name: each[place % len(each)] for name, each in vectors.items()}
            for place in range(len(self.groups(candidate)))
        ]

    def _vectors(self, name: str) -> list[Tensor]:
        # Of one model, or of one for each fold that never saw the fold's labels.
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
        seen = torch.from_numpy(fold.known(self.dataset.num_nodes))
        train, val = self.split.train_mask & seen, self.split.val_mask & seen
        if any(len(self.dataset.y[part].unique()) < 2 for part in (train, val)):
            train = val = seen  # too few nodes to tell apart learning and stopping
        return replace(self.split, train_mask=train, val_mask=val)

    def evolved(self, candidate: Candidate) -> list[Tensor]:
        """Evolved edges ``[2, E]`` for each group; of several embeddings, joined."""
        config = replaced(self.config, {"evolve.k": candidate.k})

        def edges(name: str, z: Tensor) -> Tensor:
            around = self.dataset, self.split, config, self.workspace
            return evolve_embedding(z, name, *around).edge_index

        return [
            torch.cat([edges(*pair) for pair in each.items()], dim=1)
            for each in self.embeddings(candidate)
        ]

    def _inputs(self, variant: str, candidate: Candidate | None) -> list[GraphInputs]:
        if variant == "identity":
            loops = torch.arange(self.inputs.num_nodes).expand(2, -1)
            return [self.inputs.with_evolved(loops)]
        if candidate is None or variant == "baseline":
            return [self.inputs]
        if variant == "ecg":
            return [self.inputs.with_evolved(e) for e in self.evolved(candidate)]
        scaled = [
            torch.cat([z / z.std().clamp_min(1e-6) for z in each.values()], dim=1)
            for each in self.embeddings(candidate)
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
        groups, inputs = self.groups(candidate), self._inputs(variant, candidate)
        shares = []
        for place, folds in enumerate(groups):
            read = inputs[place % len(inputs)]
            metric = self.dataset.metric.replace("_", "-")
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
