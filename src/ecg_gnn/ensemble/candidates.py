"""What the search tries, in the order in which it tries it: cheap ones first."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ecg_gnn.ensemble.boosting import fit_boosting
from ecg_gnn.ensemble.inputs import HOPS, PARTS
from ecg_gnn.ensemble.linear import EDGES, SMOOTHED, fit_linear
from ecg_gnn.ensemble.members import Fitted, Job
from ecg_gnn.ensemble.network_members import fit_networks
from ecg_gnn.ensemble.networks import Shape
from ecg_gnn.ensemble.propagation import fit_propagation
from ecg_gnn.system.machine import using_threads


@dataclass(frozen=True)
class Candidate:
    """A way to predict."""

    name: str  # in the leaderboard
    fit: Callable[[Job], Fitted]  # trains a model for every fold of a job
    reads: frozenset[str] = frozenset()
    """What it learns from beside a node's own features: ``graph``, ``labels`` of
    neighbours, ``embedding``, ``evolved`` graph."""
    cheap: bool = False  # all folds cost little, however large the graph is
    ahead: float = 0.0  # estimated seconds of preparation that no deadline can stop
    layers: int = 0  # that hold a state of every node; 0 without full batches
    only_if_large: bool = False  # for graphs whose full batches do not fit
    family: str = ""  # the candidate that this one repeats with another seed

    def train(self, job: Job) -> Fitted:
        """Train a model for every fold of a job."""
        return self.fit(job)


def train_received(candidate: Candidate, job: Job) -> Fitted:
    """Train what another process sent, with one thread and by this machine's clock."""
    with using_threads(1):
        return candidate.train(replace(job, deadline=time.monotonic() + job.deadline))


_fit_randomised = partial(fit_boosting, random_splits=True)
_NOTHING = frozenset[str]()
_GRAPH = frozenset({"graph"})
_LABELS = _GRAPH | {"labels"}
_SAGE, _GCN = Shape(convolution="sage"), Shape(convolution="gcn")
_SAGE_LABELS = replace(_SAGE, label_input=True)
_RESIDUAL: dict[str, Any] = {"residual": True, "lr": 0.003, "dropout": 0.3}
_RESIDUAL |= {"weight_decay": 0.0, "layers": 4}
_DEEP: dict[str, Any] = _RESIDUAL | {"layers": 8, "steps": 2000, "patience": 150}
# Cheap ones first: models of a table, by its parts, and networks, by their shape.
_LIST: tuple[tuple[str, frozenset[str], Any], ...] = (
    ("linear", _NOTHING, (fit_linear, ())),
    ("linear, neighbours and labels", _LABELS, (fit_linear, (*PARTS, EDGES))),
    ("linear, smoothed features", _GRAPH, (fit_linear, (SMOOTHED,))),
    ("label propagation", _LABELS, (fit_propagation,)),
    ("boosting, neighbours and labels", _LABELS, (fit_boosting, PARTS)),
    ("GCN", _GRAPH, _GCN),
    ("SAGE, labels", _LABELS, _SAGE_LABELS),
    ("GCN, labels", _LABELS, replace(_GCN, label_input=True)),
    ("boosting", _NOTHING, (fit_boosting, ())),
    ("MLP", _NOTHING, Shape(convolution="none")),
    ("boosting, neighbours", _GRAPH, (fit_boosting, HOPS)),
    ("randomised boosting, neighbours and labels", _LABELS, (_fit_randomised, PARTS)),
    ("SAGE", _GRAPH, _SAGE),
    ("deep GCN", _GRAPH, replace(_GCN, **_RESIDUAL)),
    ("deep SAGE, labels", _LABELS, replace(_SAGE_LABELS, **_RESIDUAL)),
    ("deeper SAGE, labels", _LABELS, replace(_SAGE_LABELS, **_DEEP)),
)


def candidates(seed: int = 0) -> list[Candidate]:
    """Everything that is tried, cheap ones first; another seed for another draw."""
    found = []
    for name, reads, how in _LIST:
        # Partial functions of modules, not closures: they travel to other machines.
        if isinstance(how, Shape):
            fit = partial(fit_networks, how, seed)
            found.append(Candidate(name, fit, reads, layers=1 + how.layers))
        else:
            function, *parts = how
            fit = partial(function, *parts, seed)
            found.append(Candidate(name, fit, reads, cheap=True))
    return found
