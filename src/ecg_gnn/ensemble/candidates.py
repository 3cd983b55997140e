"""What the search tries, in the order in which it tries it: cheap ones first."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ecg_gnn.ensemble.boosting import fit_boosting
from ecg_gnn.ensemble.folds import Fold
from ecg_gnn.ensemble.inputs import GraphInputs, Target
from ecg_gnn.ensemble.linear import fit_linear
from ecg_gnn.ensemble.members import Fitted
from ecg_gnn.ensemble.neighbour_table import HOPS, PARTS
from ecg_gnn.ensemble.network_members import fit_networks
from ecg_gnn.ensemble.networks import Shape


@dataclass(frozen=True)
class Job:
    """One candidate on some folds."""

    inputs: GraphInputs
    target: Target
    folds: dict[int, Fold]
    metric: str
    deadline: float
    """On the monotonic clock: training stops there and keeps what it has."""
    out_of_time: Callable[[], bool]
    """Whether the deadline has passed, or the user has had enough."""


@dataclass(frozen=True)
class Candidate:
    """A way to predict.

    Attributes:
        name: As the leaderboard calls it.
        fit: Trains a model for every fold of a job.
        reads: What it learns from beside a node's own features: ``graph``, ``labels``
            of neighbours, ``embedding``, ``evolved`` graph.
        deep: Whether it pays only where there is much to learn from.
        cheap: Whether all folds cost little, however large the graph is.
        ahead: Seconds that something takes, at a guess, which no deadline stops.
        layers: How many layers hold a state of every node; 0 without full batches.
        only_if_large: Whether it is for graphs whose full batches do not fit.
        family: The name of the candidate that it is another draw of.
    """

    name: str
    fit: Callable[[Job], Fitted]
    reads: frozenset[str] = field(default=frozenset())
    deep: bool = False
    cheap: bool = False
    ahead: float = 0.0
    layers: int = 0
    only_if_large: bool = False
    family: str = ""

    def train(self, job: Job) -> Fitted:
        """Train a model for every fold of a job."""
        return self.fit(job)


# Functions of modules, not closures: candidates travel to other machines.


def _fit_linear(parts: tuple[str, ...], job: Job) -> Fitted:
    return fit_linear(job.inputs, job.target, job.folds, parts)


def _fit_boosting(parts: tuple[str, ...], seed: int, job: Job) -> Fitted:
    return fit_boosting(
        job.inputs,
        job.target,
        job.folds,
        parts,
        out_of_time=job.out_of_time,
        seed=seed,
    )


def _fit_networks(shape: Shape, seed: int, job: Job) -> Fitted:
    return fit_networks(
        job.inputs,
        job.target,
        job.folds,
        shape,
        metric=job.metric,
        out_of_time=job.out_of_time,
        seed=seed,
    )


_GRAPH = frozenset({"graph"})
_LABELS = _GRAPH | {"labels"}


def candidates(seed: int = 0) -> list[Candidate]:
    """Everything that is tried, cheap ones first; another seed for another draw."""
    plain: dict[str, Any] = dict(lr=0.01, dropout=0.5)
    residual: dict[str, Any] = dict(
        residual=True, lr=0.003, dropout=0.3, weight_decay=0.0
    )

    def network(
        name: str, reads: frozenset[str], deep: bool = False, **shape: Any
    ) -> Candidate:
        made = Shape(**shape)
        fit = partial(_fit_networks, made, seed)
        return Candidate(name, fit, reads, deep, layers=1 + made.layers)

    def table(
        name: str, fit: Callable[[Job], Fitted], reads: frozenset[str]
    ) -> Candidate:
        return Candidate(name, fit, reads, cheap=True)

    nothing = frozenset[str]()
    return [
        table("linear", partial(_fit_linear, ()), nothing),
        table("linear, neighbours and labels", partial(_fit_linear, PARTS), _LABELS),
        table(
            "boosting, neighbours and labels",
            partial(_fit_boosting, PARTS, seed),
            _LABELS,
        ),
        network("table network", _LABELS, convolution="none", table=PARTS, **plain),
        network("GCN", _GRAPH, convolution="gcn", **plain),
        network("SAGE, labels", _LABELS, convolution="sage", label_input=True, **plain),
        network("GCN, labels", _LABELS, convolution="gcn", label_input=True, **plain),
        table("boosting", partial(_fit_boosting, (), seed), nothing),
        network("MLP", nothing, convolution="none", **plain),
        table("boosting, neighbours", partial(_fit_boosting, HOPS, seed), _GRAPH),
        network("SAGE", _GRAPH, convolution="sage", **plain),
        network("deep GCN", _GRAPH, convolution="gcn", layers=4, **residual),
        network(
            "deep SAGE, labels",
            _LABELS,
            convolution="sage",
            label_input=True,
            layers=4,
            **residual,
        ),
        network(
            "deeper SAGE, labels",
            _LABELS,
            deep=True,
            convolution="sage",
            label_input=True,
            layers=8,
            steps=2000,
            patience=150,
            **residual,
        ),
        network(
            "deeper SAGE",
            _GRAPH,
            deep=True,
            convolution="sage",
            layers=8,
            steps=2000,
            patience=150,
            **residual,
        ),
    ]
