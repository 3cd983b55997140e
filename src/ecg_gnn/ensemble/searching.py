"""Search for the best ensemble on one graph."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.certainty import Conformity, Scaling, fit_scaling
from ecg_gnn.ensemble.contest import Keep, Say, Train
from ecg_gnn.ensemble.folds import thinned
from ecg_gnn.ensemble.inputs import Bools, GraphInputs
from ecg_gnn.ensemble.members import Fitted
from ecg_gnn.ensemble.scoring import choose_metric
from ecg_gnn.ensemble.stored import read_finished, write_finished
from ecg_gnn.ensemble.tournament import (
    MOST_WEIGHED,
    SMALL,
    Tournament,
    blended,
    held_out_score,
    hold_tournament,
)
from ecg_gnn.ensemble.weighted import Ensemble, Share, as_rows, hidden_target
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.machine import holding, threads_for, using_threads

_MOST_WORKERS = 8
# Seconds that a search takes unless told otherwise, by the number of nodes.
_BUDGETS = ((5_000, 45.0), (20_000, 300.0), (None, 600.0))


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found.

    Attributes:
        ensemble: The members, weighed and calibrated.
        tournament: Everything that was tried.
        metric: What was optimised.
        seconds: How long it took.
    """

    ensemble: Ensemble
    tournament: Tournament
    metric: str
    seconds: float


def default_budget(num_nodes: int) -> float:
    """Seconds for a graph of this size."""
    return next(s for most, s in _BUDGETS if most is None or num_nodes < most)


@holding("fit")
def search(
    x: Tensor,
    edge_index: Tensor,
    values: NDArray[Any],
    num_classes: int,
    known: Bools,
    *,
    metric: str | None = None,
    budget: float | None = None,
    single: bool = False,
    seed: int = 0,
    workers: int | None = None,
    device: str = "cpu",
    train: Train = Candidate.train,
    work: Path | None = None,
    say: Say | None = None,
    extra: Sequence[Candidate] = (),
) -> Search:
    """Try candidates on folds of the known nodes, and weigh the best.

    Values ``[N]`` are classes, or numbers where ``num_classes`` is 0; only those of
    ``known`` nodes are ever read. ``extra`` are candidates beside the usual ones, and
    ``work`` is a folder for finished ones, from which a killed search resumes. The
    other options are those of ``fit_best``.
    """
    start = time.monotonic()
    budget = default_budget(len(x)) if budget is None else budget
    check_in_range("budget", budget, 1, None)
    target, centre = hidden_target(values, num_classes, known)
    if num_classes and len(np.unique(target.values[known])) < 2:
        raise InputError("the label must have at least 2 classes among known nodes")
    metric = choose_metric(metric, target)
    inputs = GraphInputs.of(as_rows(x), edge_index)
    # Python itself is the bound on small graphs: there, side by side is no faster.
    most = 1 if inputs.size < SMALL or device != "cpu" else _MOST_WORKERS
    workers = workers or min(torch.get_num_threads(), most)
    # Candidates side by side, a thread each, are faster than one with all threads.
    threads = 1 if device == "cpu" else threads_for(inputs.size)
    with using_threads(threads), _ignoring_early_ends():
        tournament = hold_tournament(
            inputs,
            target,
            np.flatnonzero(known),
            metric=metric,
            seconds=budget - (time.monotonic() - start),
            keep=_keeper(work),
            workers=workers,
            device=device,
            train=train,
            seed=seed,
            say=say,
            extra=extra,
        )
    if single:
        _keep_the_best(tournament)
    shares = [
        Share(each.name, each.weight, each.member, each.scaling)
        for each in tournament.members
    ]
    rows, predicted = tournament.rows, blended(tournament).predicted
    y, scaling = target.values[rows], Scaling()
    if num_classes:
        some = thinned(rows, MOST_WEIGHED)
        scaling = fit_scaling(predicted[some], target.values[some])
        said = scaling.probabilities(predicted[rows])
    else:
        said, y = predicted[rows] * centre[1], y * centre[1]
    ensemble = Ensemble(
        x=x,
        edge_index=edge_index,
        reading=inputs,
        target=target,
        known=known,
        shares=tuple(shares),
        scaling=scaling,
        conformity=Conformity.of(said, y, is_number=not num_classes),
        centre=centre,
    )
    return Search(ensemble, tournament, metric, time.monotonic() - start)


@contextmanager
def _ignoring_early_ends() -> Iterator[None]:
    """Linear models end after some steps, converged or not: held-out nodes judge."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _keep_the_best(tournament: Tournament) -> None:
    best = tournament.best
    for entry in tournament.entries:
        entry.weight = float(entry is best)


def _keeper(work: Path | None) -> Keep:
    """Trains a candidate, or reads it where it was finished before."""

    def keep(
        name: str, train: Callable[[], Fitted], stopped: Callable[[], bool]
    ) -> tuple[Fitted, float]:
        path = None if work is None else work / f"{name.replace(' ', '_')}.safetensors"
        if path is not None and (finished := read_finished(path)) is not None:
            return finished
        start = time.monotonic()
        fitted = train()
        seconds = time.monotonic() - start
        if path is not None and not stopped():
            write_finished(path, fitted, seconds)
        return fitted, seconds

    return keep


def best_score(found: Search) -> float:
    """The ensemble's score on nodes that were held out."""
    ensemble = found.ensemble
    given = found.tournament, ensemble.target, found.metric, ensemble.centre[1]
    value, _ = held_out_score(*given)
    return value
