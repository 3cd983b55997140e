"""The search: candidates compete on held-out nodes until time runs out."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ecg_gnn.ensemble.blend import blend_weights
from ecg_gnn.ensemble.candidates import Candidate, candidates
from ecg_gnn.ensemble.certainty import fit_slope
from ecg_gnn.ensemble.contest import Contest, Entry, Keep, Say, Train, Work
from ecg_gnn.ensemble.folds import Fold, OutOfFold, fold_count, make_folds, thinned
from ecg_gnn.ensemble.inputs import GraphInputs, Numbers, Target
from ecg_gnn.ensemble.scoring import SCORES, interval
from ecg_gnn.system.machine import available_bytes

# Graphs up to this size (nodes plus edges) show all folds to every candidate; larger
# ones show the first fold, and the others to those that did well on it.
SMALL = 60_000
_ROUND_1_SHARE = 0.6
_BYTES_PER_STATE, _USUAL_LAYERS = 64 * 4 * 8, 3
"""What a layer keeps of a node for its backward pass, at a guess."""
_DEEP_NODES = 5_000
_KEPT = 4
"""Candidates, at least, that are shown all folds where the graph is large."""
_ENOUGH = 1000
"""Held-out nodes that weights may be chosen on, even if there are more."""
MOST_WEIGHED = 20_000
"""Nodes on which weights are chosen, about, and probabilities calibrated."""
_MOST_SCALED = 4_000
"""Nodes on which each member is calibrated, about."""
_MOST_DRAWS, _DRAWN_AGAIN = 3, 4
_DRAWN = ("network", "boosting")
# Of the budget, for blending, writing and the card.
_RESERVED_SHARE, _RESERVED_MOST = 0.08, 15.0
# And for the test scores of what was tried, by nodes plus edges.
_RESERVED_SECONDS, _RESERVED_SCORES_SHARE = 1e-5, 0.2


@dataclass(frozen=True, eq=False)
class Tournament:
    """Candidates, trained and ranked.

    Attributes:
        entries: Best first.
        folds: All folds.
        rows: Nodes that every member of the ensemble has been judged on.
        best: The best single candidate on these nodes.
        failed: Candidates that could not be trained, and why.
        interrupted: Whether it was ended by the user.
    """

    entries: list[Entry]
    folds: tuple[Fold, ...]
    rows: Numbers
    best: Entry
    failed: Mapping[str, str]
    interrupted: bool = False

    @property
    def members(self) -> list[Entry]:
        """Those that count in the ensemble, heaviest first."""
        counted = [entry for entry in self.entries if entry.weight > 0]
        return sorted(counted, key=lambda entry: -entry.weight)


def hold_tournament(
    inputs: GraphInputs,
    target: Target,
    labelled: Numbers,
    *,
    metric: str,
    seconds: float,
    keep: Keep,
    train: Train = Candidate.train,
    workers: int = 1,
    device: str = "cpu",
    seed: int = 0,
    say: Say | None = None,
    extra: Sequence[Candidate] = (),
) -> Tournament:
    """Try candidates, cheap ones first, until time runs out, and weigh the best.

    ``keep`` stores finished candidates, from which a killed search resumes; ``extra``
    ones are tried last. The other options are those of ``search``.
    """
    start = time.monotonic()
    folds = make_folds(target, labelled, fold_count(len(labelled)), seed)
    reserved = min(_RESERVED_SHARE * seconds, _RESERVED_MOST)
    scores = _RESERVED_SECONDS * inputs.size
    end = start + seconds - reserved - min(scores, _RESERVED_SCORES_SHARE * seconds)
    times = start, end
    contest = Contest(
        inputs, target, folds, metric, *times, keep, train, say, workers, device
    )
    interrupted = False
    try:
        _rounds(contest, seed, extra)
    except KeyboardInterrupt:
        if not contest.entries:
            raise
        interrupted = True
    rows, best = _weigh(contest)
    failed = dict(contest.failed)
    return Tournament(contest.entries, folds, rows, best, failed, interrupted)


def _rounds(contest: Contest, seed: int, extra: Sequence[Candidate]) -> None:
    everything = tuple(range(len(contest.folds)))
    is_small = contest.inputs.size <= SMALL
    share = 1.0 if is_small else _ROUND_1_SHARE
    until = contest.start + share * (contest.end - contest.start)
    many = contest.inputs.num_nodes >= _DEEP_NODES
    contest.finish(
        [
            Work(one, everything if is_small or one.cheap else everything[:1])
            for one in [*candidates(seed), *extra]
            if (many or not one.deep) and _fits(contest, one)
        ],
        until,
    )
    contest.finish(_further_folds(contest, everything), contest.end)
    for draw in range(1, _MOST_DRAWS + 1):
        _draw_again(contest, everything, seed, draw)


def _further_folds(contest: Contest, everything: tuple[int, ...]) -> list[Work]:
    """The best candidates on the folds they have not seen, one fold after another.

    There are as many candidates as time allows, at least a few.
    """
    left = contest.workers * max(contest.end - time.monotonic(), 0)
    kept: list[Entry] = []
    for entry in contest.entries:
        unseen = len(everything) - len(entry.out.folds)
        left -= unseen * entry.seconds / len(entry.out.folds)
        if left > 0 or len(kept) < _KEPT:
            kept.append(entry)
    return [
        Work(entry.candidate, (number,), entry.seconds / len(entry.out.folds))
        for number in everything
        for entry in kept
        if number not in entry.out.folds
    ]


def _fits(contest: Contest, candidate: Candidate, folds: int = 1) -> bool:
    """Whether there is memory to train a candidate on folds at once, or need of it."""
    nodes = contest.inputs.num_nodes * folds
    room = available_bytes(torch.device(contest.device)) / 2 / contest.workers
    if candidate.only_if_large:
        return _BYTES_PER_STATE * nodes * _USUAL_LAYERS > room
    return _BYTES_PER_STATE * nodes * candidate.layers <= room


def _draw_again(
    contest: Contest, everything: tuple[int, ...], seed: int, draw: int
) -> None:
    """The best networks and boosted trees once more, with other random numbers."""
    again = {each.name: each for each in candidates(seed + 1000 * draw)}
    whole = [e for e in contest.entries if len(e.out.folds) == len(everything)]
    drawn = [e for e in whole if e.member.kind in _DRAWN and e.name in again]
    work = []
    for entry in drawn[:_DRAWN_AGAIN]:
        if not _fits(contest, entry.candidate, len(everything)):
            continue
        name = f"{entry.name}, seed {draw + 1}"
        named = replace(again[entry.name], name=name, family=entry.name)
        work.append(Work(named, everything, 1.2 * entry.seconds))
    contest.finish(work, contest.end)


def _weigh(contest: Contest) -> tuple[Numbers, Entry]:
    """Weigh candidates on nodes that all of them were judged on; also the best one."""
    folds = contest.folds
    # Candidates have seen the first folds, some more of them than others. Folds count
    # that all of the best have seen, or more where these are few nodes.
    count = min(len(entry.out.folds) for entry in contest.entries[:_KEPT])
    most = max(len(entry.out.folds) for entry in contest.entries)
    while count < most and sum(len(f.held_out) for f in folds[:count]) < _ENOUGH:
        count += 1
    entries = [e for e in contest.entries if len(e.out.folds) >= count]
    shared = set.intersection(*(set(entry.out.folds) for entry in entries))
    rows = np.concatenate([folds[number].held_out for number in sorted(shared)])
    score, values = SCORES[contest.metric], contest.target.values
    some, few = thinned(rows, MOST_WEIGHED), thinned(rows, _MOST_SCALED)
    if not contest.target.is_number:
        # Trees that were cut short are far too unsure of themselves, say.
        for entry in entries:
            entry.scaling = fit_slope(entry.out.predicted[few], values[few])
    weights = blend_weights(
        score,
        SCORES["r2" if contest.target.is_number else "log-loss"],
        values[some],
        [entry.held_out[some] for entry in entries],
        [entry.candidate.family or entry.name for entry in entries],
    )
    for entry, weight in zip(entries, weights, strict=True):
        entry.weight = float(weight)
    judged = [score.function(values[rows], e.out.predicted[rows]) for e in entries]
    return rows, entries[int(np.argmax(judged))]


def blended(tournament: Tournament) -> OutOfFold:
    """The ensemble's predictions of nodes that it was not trained on."""
    members = tournament.members
    parts = [entry.weight * entry.held_out for entry in members]
    return OutOfFold(np.sum(parts, axis=0), members[0].out.folds)


def held_out_score(
    tournament: Tournament, target: Target, metric: str, scale: float
) -> tuple[float, tuple[float, float]]:
    """The ensemble's score out of fold, and where it may lie, on the labels' scale."""
    rows, score = tournament.rows, SCORES[metric]
    y, predicted = target.values[rows], blended(tournament).predicted[rows]
    value = score.shown(score.function(y, predicted), scale)
    return value, interval(score, y, predicted, scale=scale)
