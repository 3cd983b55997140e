"""Search for the best ensemble on one graph."""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.certainty import Conformity, Scaling, fit_scaling
from ecg_gnn.ensemble.contest import Contest, Say, Train
from ecg_gnn.ensemble.folds import fold_count, make_folds, thinned
from ecg_gnn.ensemble.inputs import Bools, GraphInputs
from ecg_gnn.ensemble.scoring import choose_metric
from ecg_gnn.ensemble.tournament import (
    MOST_WEIGHED,
    SMALL,
    hold_tournament,
    training_seconds,
)
from ecg_gnn.ensemble.weighted import Ensemble, Share, as_rows, hidden_target
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.machine import holding, threads_for, using_threads

_MOST_WORKERS = 8
# Seconds that a search takes unless told otherwise, by the number of nodes.
_BUDGETS = ((5_000, 45.0), (20_000, 300.0), (None, 600.0))


class Search(NamedTuple):
    """What a search found."""

    ensemble: Ensemble
    """The members, weighed and calibrated"""
    contest: Contest
    """Everything that was tried"""
    seconds: float
    """How long it took"""

    def score(self) -> tuple[float, tuple[float, float]]:
        """The ensemble's on nodes that were held out, and where it may lie."""
        return self.contest.score(self.ensemble.centre[1])


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
    metric, labelled = choose_metric(metric, target), np.flatnonzero(known)
    inputs = GraphInputs.of(as_rows(x), edge_index)
    # Python itself is the bound on small graphs: there, side by side is no faster.
    most = 1 if inputs.size < SMALL or device != "cpu" else _MOST_WORKERS
    contest = Contest(
        inputs=inputs,
        target=target,
        folds=dict(
            enumerate(make_folds(target, labelled, fold_count(len(labelled)), seed))
        ),
        metric=metric,
        start=start,
        end=start + training_seconds(budget, inputs.size),
        train=train,
        work=work,
        say=say,
        workers=workers or min(torch.get_num_threads(), most),
        device=device,
    )
    # Candidates side by side, a thread each, are faster than one with all threads.
    threads = 1 if device == "cpu" else threads_for(inputs.size)
    with using_threads(threads), _ignoring_early_ends():
        hold_tournament(contest, seed, extra)
    if single:
        for entry in contest.entries:
            entry.weight = float(entry.name == contest.best)
    predicted, rows, scaling = contest.blended(), contest.rows, Scaling()
    said, y = predicted[rows], target.values[rows]
    if num_classes:
        some = thinned(rows, MOST_WEIGHED)
        scaling = fit_scaling(predicted[some], target.values[some])
        said = scaling.probabilities(said)
    else:
        said, y = said * centre[1], y * centre[1]
    ensemble = Ensemble(
        x=x,
        edge_index=edge_index,
        reading=inputs,
        target=target,
        known=known,
        shares=tuple(
            Share(each.name, each.weight, each.member, each.scaling)
            for each in contest.members
        ),
        scaling=scaling,
        conformity=Conformity.of(said, y, is_number=not num_classes),
        centre=centre,
    )
    return Search(ensemble, contest, time.monotonic() - start)


@contextmanager
def _ignoring_early_ends() -> Iterator[None]:
    """Linear models end after some steps, converged or not: held-out nodes judge."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
