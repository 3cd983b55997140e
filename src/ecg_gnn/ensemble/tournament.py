"""The search: candidates compete on held-out nodes until the time is up."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ecg_gnn.ensemble.blend import blend_weights
from ecg_gnn.ensemble.candidates import Candidate, Job, candidates
from ecg_gnn.ensemble.folds import Fold, OutOfFold, make_folds
from ecg_gnn.ensemble.inputs import GraphInputs, Numbers, Target
from ecg_gnn.ensemble.members import Fitted, Member
from ecg_gnn.ensemble.scoring import SCORES, interval

NUM_FOLDS = 5
# Graphs up to this size (nodes plus edges) show all folds to every candidate; larger
# ones show the first fold, and the rest to those that did well on it.
_SMALL = 60_000
_ROUND_1_SHARE = 0.55
_DEEP_NODES = 5_000
_SLOW_BUDGET = 90.0
"""Seconds from which on candidates take part that no deadline stops."""
_KEPT = 8
"""Candidates that are trained on all folds where the graph is large."""
# Of the budget, for blending, writing and the card.
_RESERVED_SHARE, _RESERVED_MOST = 0.08, 15.0

Say = Callable[[str, str], Callable[[int, int, float], None]]
Keep = Callable[[str, Callable[[], Fitted]], tuple[Fitted, float]]
"""Trains, or reads what was trained before; with the seconds that it took."""


@dataclass(eq=False)
class Entry:
    """A candidate in the tournament."""

    candidate: Candidate
    member: Member
    out: OutOfFold
    seconds: float
    score: float = -np.inf
    weight: float = 0.0

    @property
    def name(self) -> str:
        """As the leaderboard calls it."""
        return self.candidate.name


@dataclass(frozen=True, eq=False)
class Tournament:
    """Candidates, trained and ranked.

    Attributes:
        entries: Best first.
        folds: All folds.
        rows: Nodes that every member of the ensemble has been judged on.
        interrupted: Whether it was ended by the user.
    """

    entries: list[Entry]
    folds: tuple[Fold, ...]
    rows: Numbers
    interrupted: bool = False

    @property
    def members(self) -> list[Entry]:
        """Those that count in the ensemble, heaviest first."""
        counted = [entry for entry in self.entries if entry.weight > 0]
        return sorted(counted, key=lambda entry: -entry.weight)


@dataclass(eq=False)
class _Running:
    inputs: GraphInputs
    target: Target
    folds: tuple[Fold, ...]
    metric: str
    end: float
    keep: Keep
    say: Say | None
    entries: list[Entry] = field(default_factory=list)

    def train(self, candidate: Candidate, numbers: list[int], until: float) -> None:
        """Train a candidate on some folds, and rank it."""
        folds = {number: self.folds[number] for number in numbers}
        progress = self.say("fit", candidate.name) if self.say else None
        job = Job(self.inputs, self.target, folds, self.metric, until, progress)
        name = f"{candidate.name} {'-'.join(map(str, numbers))}"
        (member, out), seconds = self.keep(name, lambda: candidate.fit(job))
        before = next((e for e in self.entries if e.candidate is candidate), None)
        if before is None:
            entry = Entry(candidate, member, out, seconds)
            self.entries.append(entry)
        else:
            entry = before
            held_out = np.concatenate([fold.held_out for fold in folds.values()])
            entry.member = entry.member.joined(member)
            entry.out = entry.out.joined(out, held_out)
            entry.seconds += seconds
        entry.score = self.judge(entry, entry.out.folds)
        self.entries.sort(key=lambda each: -each.score)

    def judge(self, entry: Entry, numbers: tuple[int, ...]) -> float:
        """The score on the nodes that some folds hold out."""
        rows = np.concatenate([self.folds[number].held_out for number in numbers])
        y = self.target.values[rows]
        return SCORES[self.metric].function(y, entry.out.predicted[rows])


def hold_tournament(
    inputs: GraphInputs,
    target: Target,
    labelled: Numbers,
    *,
    metric: str,
    seconds: float,
    keep: Keep,
    seed: int = 0,
    say: Say | None = None,
    extra: Sequence[Candidate] = (),
) -> Tournament:
    """Try candidates, cheap ones first, until the time is up, and weigh the best.

    Args:
        inputs: The graph.
        target: What to predict; only labels of ``labelled`` nodes are read.
        labelled: Nodes to learn from.
        metric: What decides, a key of ``SCORES``.
        seconds: The budget.
        keep: Keeps what is finished, so that a killed search goes on.
        seed: Of folds and first weights.
        say: Shows how it goes.
        extra: Further candidates, tried last.
    """
    start = time.monotonic()
    count = min(NUM_FOLDS, len(labelled) // 4)
    folds = make_folds(target, labelled, max(2, count), seed)
    end = start + seconds - min(_RESERVED_SHARE * seconds, _RESERVED_MOST)
    running = _Running(inputs, target, folds, metric, end, keep, say)
    interrupted = False
    try:
        _rounds(running, start, seed, extra)
    except KeyboardInterrupt:
        if not running.entries:
            raise
        interrupted = True
    rows = _weigh(running)
    return Tournament(running.entries, folds, rows, interrupted)


def _rounds(
    running: _Running, start: float, seed: int, extra: Sequence[Candidate]
) -> None:
    everything = list(range(len(running.folds)))
    first = everything if running.inputs.size <= _SMALL else everything[:1]
    share = 1.0 if first == everything else _ROUND_1_SHARE
    until = start + share * (running.end - start)
    large = running.inputs.num_nodes >= _DEEP_NODES
    patient = until - start >= _SLOW_BUDGET
    for candidate in [*candidates(seed), *extra]:
        if time.monotonic() >= until:
            break
        if (patient or not candidate.slow) and (large or not candidate.deep):
            running.train(candidate, first, until)
    rest = everything[len(first) :]
    if rest:
        for entry in running.entries[:_KEPT]:
            left = running.end - time.monotonic()
            if left > 0.25 * entry.seconds * len(rest):
                running.train(entry.candidate, rest, running.end)
    _more_seeds(running, everything, seed)


def _more_seeds(running: _Running, folds: list[int], seed: int) -> None:
    """With the time that is left, the best candidates once more, drawn anew."""
    for draw in (1, 2):
        again = {each.name: each for each in candidates(seed + 1000 * draw)}
        best = [e for e in running.entries if len(e.out.folds) == len(folds)]
        for entry in [e for e in best if "network" in e.member.kind][:3]:
            fits = time.monotonic() + 1.2 * entry.seconds < running.end
            if fits and entry.name in again:
                other = again[entry.name]
                named = Candidate(
                    f"{other.name}, seed {draw + 1}", other.fit, other.reads
                )
                running.train(named, folds, running.end)


def _weigh(running: _Running) -> Numbers:
    """Weigh those that were trained on the most folds; returns the nodes used."""
    most = max(len(entry.out.folds) for entry in running.entries)
    whole = [entry for entry in running.entries if len(entry.out.folds) == most]
    rows = np.concatenate([running.folds[n].held_out for n in whole[0].out.folds])
    smooth = SCORES["r2" if running.target.is_number else "log-loss"]
    weights = blend_weights(
        SCORES[running.metric],
        smooth,
        running.target.values[rows],
        [entry.out.predicted[rows] for entry in whole],
    )
    for entry, weight in zip(whole, weights, strict=True):
        entry.weight = float(weight)
    return rows


def blended(tournament: Tournament) -> OutOfFold:
    """What the ensemble says of nodes that it was not trained on."""
    members = tournament.members
    parts = [entry.weight * entry.out.predicted for entry in members]
    return OutOfFold(np.sum(parts, axis=0), members[0].out.folds)


def held_out_score(
    tournament: Tournament, target: Target, metric: str
) -> tuple[float, tuple[float, float]]:
    """The ensemble's score out of fold, and where it may lie."""
    rows, score = tournament.rows, SCORES[metric]
    y, predicted = target.values[rows], blended(tournament).predicted[rows]
    value = score.shown(score.function(y, predicted))
    return value, interval(score, y, predicted)
