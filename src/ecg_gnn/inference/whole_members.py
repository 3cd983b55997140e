"""Candidates that the pipeline trains: whole networks, and networks by mini-batches."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed.protocol import as_trained, load_weights
from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Target
from ecg_gnn.ensemble.members import (
    Fitted,
    Fold,
    Job,
    Member,
    fold_count,
    make_folds,
    out_of_fold,
)
from ecg_gnn.ensemble.tournament import SMALL
from ecg_gnn.ensemble.weighted import KINDS
from ecg_gnn.inference.classifier import Calibration, GraphClassifier, fit_classifier
from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import Network
from ecg_gnn.pipeline import resolve
from ecg_gnn.pipeline.classification import BATCH_SIZE, network_of, prepare_graphs
from ecg_gnn.system.files import below
from ecg_gnn.system.machine import holding

_WHOLE = ("gpr-gnn", "fagcn")
_STEPS, _LAYERS = 300, 2
# A step on one CPU core, at a guess.
_SECONDS_PER_NODE, _SECONDS_PER_EDGE, _SECONDS_PER_CELL = 8e-6, 2e-7, 1e-8


@dataclass(frozen=True, eq=False)
class WholeMember(Member):
    """Networks of one fold each, as ``fit --model`` would keep them."""

    kind: ClassVar[str] = "whole"
    of_folds = ("networks",)

    config: RunConfig
    channels: int
    networks: tuple[Network, ...]

    @torch.no_grad()
    def predict(self, inputs: GraphInputs, target: Target, known: Bools) -> Floats:
        """The mean over folds."""
        data = Data(torch.from_numpy(inputs.x).double(), inputs.edge_index)
        graphs, plain = prepare_graphs(data, [], self.config), Calibration()
        with using_engine(self.config.engine):
            said = [plain.probabilities(each(data.x, graphs)) for each in self.networks]
        return np.asarray(np.mean(said, axis=0), dtype=np.float32)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Settings, and weights fold by fold."""
        tensors = {
            f"{place}.{name}": as_trained(tensor)
            for place, network in enumerate(self.networks)
            for name, tensor in network.state_dict().items()
        }
        plain = {
            "config": self.config.to_dict(),
            "networks": len(self.networks),
            "channels": self.channels,
        }
        return plain, tensors

    @classmethod
    def from_state(
        cls, width: int, plain: dict[str, Any], tensors: dict[str, Tensor]
    ) -> Self:
        """See ``state``; the graph is given when predictions are asked for."""
        config, channels = RunConfig.from_dict(plain["config"]), int(plain["channels"])
        sizes = cast(GraphDataset, _Sizes(channels, width))
        networks = []
        for place in range(int(plain["networks"])):
            with torch.device("meta"):  # absurd sizes must not take memory
                network = network_of(config, sizes, 1)
                load_weights(network, below(tensors, str(place)))
            networks.append(network.double().eval())
        return cls(width, config, channels, tuple(networks))


class _Sizes(NamedTuple):
    """What of a graph decides the shapes of a network that new nodes may join."""

    num_features: int
    num_classes: int
    num_nodes: int = 1


KINDS[WholeMember.kind] = WholeMember


def whole_candidates(dataset: GraphDataset, seed: int, device: str) -> list[Candidate]:
    """Networks that the pipeline trains, of classes only.

    Where full batches do not fit into memory, SAGE by mini-batches takes their place.
    """
    nodes, edges = dataset.num_nodes, dataset.edge_index.size(1)
    step = _SECONDS_PER_NODE * nodes + _SECONDS_PER_EDGE * edges
    step += _SECONDS_PER_CELL * nodes * dataset.num_features
    split = dataset.split(0)
    labelled = int((split.train_mask | split.val_mask).sum())
    folds = 1 if nodes + edges > SMALL else fold_count(labelled)

    def candidate(name: str, about: dict[str, Any], **settings: Any) -> Candidate:
        given = settings | {"seed": seed, "device": device}
        fit = partial(_fit_whole, dataset, given)
        return Candidate(name, fit, frozenset({"graph"}), **about)

    full = {"ahead": folds * _STEPS * step, "layers": _LAYERS}
    batches = {"model": "sage", "batch_size": BATCH_SIZE}
    return [
        *(candidate(name, full, model=name) for name in _WHOLE),
        candidate("SAGE by mini-batches", {"only_if_large": True}, **batches),
    ]


def _fit_whole(dataset: GraphDataset, settings: dict[str, Any], job: Job) -> Fitted:
    fixed: dict[str, Any] = {"preset": "auto", "splits": (0,), "embedding": "none"}
    fitted: list[GraphClassifier] = []
    for fold in job.folds.values():
        if job.stopped():
            raise InterruptedError("stopped before the last fold")
        part = _with_fold(dataset, job.target, fold)
        asked = RunConfig.of(dataset=part.name, **fixed, **settings)
        with holding("generator"):
            one, _ = fit_classifier(part, resolve(asked, part), "none")
        # The ensemble has a calibration of its own.
        fitted.append(replace(one, calibration=Calibration()))
    held_out = [
        one.probabilities()[fold.held_out].astype(np.float32)
        for one, fold in zip(fitted, job.folds.values(), strict=True)
    ]
    networks, channels = tuple(one.network for one in fitted), dataset.num_features
    width = job.target.width
    member = WholeMember(width, fitted[0].config, channels, networks)
    return member, out_of_fold(dataset.num_nodes, width, job.folds, held_out)


def _with_fold(dataset: GraphDataset, target: Target, fold: Fold) -> GraphDataset:
    """The graph with one split of the nodes that a fold learns from, and no test nodes.

    Some of them choose the step: were it the held-out ones, these would flatter it.
    """
    own = make_folds(target, fold.train, fold_count(len(fold.train)), seed=0)[0]
    masks = torch.zeros(3, 1, dataset.num_nodes, dtype=torch.bool)
    masks[0, 0, torch.from_numpy(own.train)] = True
    masks[1, 0, torch.from_numpy(own.held_out)] = True
    return replace(
        dataset, train_masks=masks[0], val_masks=masks[1], test_masks=masks[2]
    )
