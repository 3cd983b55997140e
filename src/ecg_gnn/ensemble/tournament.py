"""The search: who is trained on what and for how long, and what comes of it."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.ensemble.candidates import Candidate, candidates
from ecg_gnn.ensemble.certainty import (
    Scaling,
    choose_multipliers,
    fit_scaling,
    fit_slope,
    sorted_errors,
)
from ecg_gnn.ensemble.contest import Contest, Say, Train, Work, blend_weights
from ecg_gnn.ensemble.inputs import Bools, GraphInputs
from ecg_gnn.ensemble.members import fold_count, make_folds, thinned
from ecg_gnn.ensemble.scoring import SCORES, choose_metric, smooth
from ecg_gnn.ensemble.weighted import Ensemble, Share, as_rows, hidden_target
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.machine import available_bytes, holding, threads_for, using_threads

# Graphs up to this size (nodes plus edges) show all folds to every candidate; larger
# ones show the first fold, and the others to those that did well on it.
SMALL = 60_000
_ROUND_1_SHARE = 0.6
# What a layer keeps of a node for its backward pass, at a guess.
_BYTES_PER_STATE, _USUAL_LAYERS = 64 * 4 * 8, 3
_MOST_LAYERS, _MANY = 5, 5_000  # deeper ones pay with so many nodes
_KEPT = 4  # candidates, at least, that are shown all folds where the graph is large
_ENOUGH = 1000  # held-out nodes that weights may be chosen on, even if there are more
_MOST_WEIGHED = 20_000  # nodes, about, that choose weights and calibrate the ensemble
_MOST_SCALED = 4_000  # nodes, about, on which each member is calibrated
_MOST_DRAWS, _DRAWN_AGAIN = 3, 4
_DRAWN = ("network", "boosting")
# Of the budget, for blending, writing and the card.
_RESERVED_SHARE, _RESERVED_MOST = 0.08, 15.0
# And for the test scores of what was tried, by nodes plus edges.
_RESERVED_SECONDS, _RESERVED_SCORES_SHARE = 1e-5, 0.2
_MOST_WORKERS = 8
# Seconds that a search takes unless told otherwise, by the number of nodes.
_BUDGETS = ((5_000, 45.0), (20_000, 300.0), (None, 600.0))


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
) -> Contest:
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
    metric, labelled = choose_metric(metric, num_classes), np.flatnonzero(known)
    inputs = GraphInputs.of(as_rows(x), edge_index)
    folds = make_folds(target, labelled, fold_count(len(labelled)), seed)
    # Python itself is the bound on small graphs: there, side by side is no faster.
    most = 1 if inputs.size < SMALL or device != "cpu" else _MOST_WORKERS
    reserved = min(_RESERVED_SECONDS * inputs.size, _RESERVED_SCORES_SHARE * budget)
    reserved += min(_RESERVED_SHARE * budget, _RESERVED_MOST)
    contest = Contest(
        inputs=inputs,
        target=target,
        folds=dict(enumerate(folds)),
        metric=metric,
        start=start,
        end=start + budget - reserved,
        train=train,
        work=work,
        say=say,
        workers=workers or min(torch.get_num_threads(), most),
        device=device,
    )
    # Candidates side by side, a thread each, are faster than one with all threads.
    threads = 1 if device == "cpu" else threads_for(inputs.size)
    with using_threads(threads):
        hold_tournament(contest, seed, extra)
    if single:
        for entry in contest.entries:
            entry.weight = float(entry.name == contest.best)
    counted = [entry for entry in contest.entries if entry.weight > 0]
    members = sorted(counted, key=lambda entry: -entry.weight)
    rows, scaling = contest.rows, Scaling()
    predicted = np.sum([each.weight * each.held_out for each in members], axis=0)
    said, y = predicted[rows], target.values[rows]
    if num_classes:
        some = thinned(rows, _MOST_WEIGHED)
        scaling = fit_scaling(predicted[some], target.values[some])
        said = scaling.probabilities(said)
    multipliers, contest.said = choose_multipliers(SCORES[metric], y, said)
    if not num_classes:
        said, y = said * centre[1], y * centre[1]
    contest.ensemble = Ensemble(
        x=x,
        edge_index=edge_index,
        reading=inputs,
        target=target,
        shares=tuple(
            Share(each.name, each.weight, each.member, each.scaling) for each in members
        ),
        scaling=scaling,
        multipliers=tuple(multipliers.tolist()),
        errors=sorted_errors(said, y, is_number=not num_classes),
        centre=centre,
    )
    contest.seconds = time.monotonic() - start
    return contest


def hold_tournament(
    contest: Contest, seed: int = 0, extra: Sequence[Candidate] = ()
) -> None:
    """Train candidates, cheap ones first, until time runs out, and weigh the best.

    ``extra`` ones are tried last.
    """
    from sklearn.exceptions import ConvergenceWarning

    everything, end = tuple(contest.folds), contest.end
    is_small = contest.inputs.size <= SMALL
    share = 1.0 if is_small else _ROUND_1_SHARE
    many = contest.inputs.num_nodes >= _MANY
    first = [
        Work(one, everything if is_small or one.cheap else everything[:1])
        for one in [*candidates(seed), *extra]
        if (many or one.layers <= _MOST_LAYERS) and _fits(contest, one)
    ]
    with warnings.catch_warnings():
        # Linear models end after some steps, converged or not: held-out nodes judge.
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            contest.finish(first, contest.start + share * (end - contest.start))
            tried = {entry.name for entry in contest.entries} | set(contest.failed)
            # On a slow machine the first round has no time for some that cost little.
            cheap = [work for work in first if work.candidate.cheap]
            contest.finish([w for w in cheap if w.candidate.name not in tried], end)
            contest.finish(_further_folds(contest), end)
            for draw in range(1, _MOST_DRAWS + 1):
                contest.finish(_another_draw(contest, seed, draw), end)
        except KeyboardInterrupt:
            if not contest.entries:
                raise
            contest.interrupted = True
    _weigh(contest)


def _further_folds(contest: Contest) -> list[Work]:
    """The best candidates on the folds they have not seen.

    There are as many candidates as time allows, at least a few. Networks of all these
    folds choose their step together if they can: one that each chose for itself would
    flatter it.
    """
    left = contest.workers * max(contest.end - time.monotonic(), 0)
    together, in_turn = list[Work](), list[Work]()
    for place, entry in enumerate(contest.entries):
        one, each = entry.candidate, entry.seconds / len(entry.folds)
        unseen = [number for number in contest.folds if number not in entry.folds]
        left -= len(unseen) * each
        if left > 0 and not one.only_if_large and _fits(contest, one, len(unseen)):
            together += [Work(one, unseen, len(unseen) * each)] if unseen else []
        elif left > 0 or place < _KEPT:
            in_turn += [Work(one, (number,), each) for number in unseen]
    order = tuple(contest.folds)
    return together + sorted(in_turn, key=lambda work: order.index(work.folds[0]))


def _fits(contest: Contest, candidate: Candidate, folds: int = 1) -> bool:
    """Whether there is memory to train a candidate on folds at once, or need of it."""
    layer = _BYTES_PER_STATE * contest.inputs.num_nodes * folds
    room = available_bytes(torch.device(contest.device)) / 2 / contest.workers
    if candidate.only_if_large:
        return layer * _USUAL_LAYERS > room
    return layer * candidate.layers <= room


def _another_draw(contest: Contest, seed: int, draw: int) -> list[Work]:
    """The best networks and boosted trees once more, with other random numbers."""
    again = {each.name: each for each in candidates(seed + 1000 * draw)}
    everything = tuple(contest.folds)
    whole = [e for e in contest.entries if len(e.folds) == len(everything)]
    drawn = [e for e in whole if e.member.kind in _DRAWN and e.name in again]
    work = []
    for entry in drawn[:_DRAWN_AGAIN]:
        if _fits(contest, entry.candidate, len(everything)):
            name = f"{entry.name}, seed {draw + 1}"
            named = replace(again[entry.name], name=name, family=entry.name)
            work.append(Work(named, everything, 1.2 * entry.seconds))
    return work


def _weigh(contest: Contest) -> None:
    """Weigh candidates on nodes that all of them were judged on, and find the best."""
    folds = contest.folds
    # Candidates have seen the first folds, some more of them than others. Folds count
    # that all of the best have seen, or more where these are few nodes.
    count = min(len(entry.folds) for entry in contest.entries[:_KEPT])
    most = max(len(entry.folds) for entry in contest.entries)
    while count < most and len(contest.held_out(list(folds)[:count])) < _ENOUGH:
        count += 1
    entries = [e for e in contest.entries if len(e.folds) >= count]
    shared = set.intersection(*(set(entry.folds) for entry in entries))
    contest.rows = rows = contest.held_out(sorted(shared))
    score, values = SCORES[contest.metric], contest.target.values
    some, few = thinned(rows, _MOST_WEIGHED), thinned(rows, _MOST_SCALED)
    if not contest.target.is_number:
        # Trees that were cut short are far too unsure of themselves, say.
        for entry in entries:
            entry.scaling = fit_slope(entry.out[few], values[few])
    # Weights are judged by what is said with the multipliers of the best together.
    best = np.mean([entry.held_out[some] for entry in entries[:_KEPT]], axis=0)
    multipliers, _ = choose_multipliers(score, values[some], best)
    weights = blend_weights(
        replace(score, function=lambda y, p: score.function(y, p * multipliers)),
        smooth(contest.target.num_classes, contest.metric),
        values[some],
        [entry.held_out[some] for entry in entries],
        [entry.candidate.family or entry.name for entry in entries],
    )
    for entry, weight in zip(entries, weights, strict=True):
        entry.weight = float(weight)
    judged = [score.function(values[rows], e.decided[rows]) for e in entries]
    contest.best = entries[int(np.argmax(judged))].name
