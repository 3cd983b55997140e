"""The search: candidates compete on held-out nodes until the time is up."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
import torch

from ecg_gnn.ensemble.blend import blend_weights
from ecg_gnn.ensemble.candidates import Candidate, Job, candidates
from ecg_gnn.ensemble.folds import Fold, OutOfFold, make_folds
from ecg_gnn.ensemble.inputs import GraphInputs, Numbers, Target
from ecg_gnn.ensemble.members import Fitted, Member
from ecg_gnn.ensemble.scoring import SCORES, interval
from ecg_gnn.system.machine import available_bytes

NUM_FOLDS = 5
# Graphs up to this size (nodes plus edges) show all folds to every candidate; larger
# ones show the first fold, and the others to those that did well on it.
SMALL = 60_000
_ROUND_1_SHARE = 0.6
_FAIR_SHARES = 3
"""A candidate may take this many times what an even division of a round gives it."""
_BYTES_PER_STATE, _USUAL_LAYERS = 64 * 4 * 8, 3
"""What a layer keeps of a node for its backward pass, at a guess."""
_MOST_AHEAD = 0.4
"""Of what is left, the most that something may take which no deadline stops."""
_DEEP_NODES = 5_000
_KEPT = 4
"""Candidates, at least, that are shown all folds where the graph is large."""
_ENOUGH = 1000
"""Held-out nodes that weights may be chosen on, even if there are more."""
_MOST_DRAWS = 3
# Of the budget, for blending, writing and the card.
_RESERVED_SHARE, _RESERVED_MOST = 0.08, 15.0

Say = Callable[[str, str], Callable[[int, int, float], None]]
Keep = Callable[[str, Callable[[], Fitted]], tuple[Fitted, float]]
"""Trains, or reads what was trained before; with the seconds that it took."""
Train = Callable[[Candidate, Job], Fitted]
"""Trains a candidate, here or on another machine."""


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
    def best(self) -> Entry:
        """The best single candidate, of those that were judged on the most folds."""
        most = max(len(entry.out.folds) for entry in self.entries)
        return next(e for e in self.entries if len(e.out.folds) == most)

    @property
    def members(self) -> list[Entry]:
        """Those that count in the ensemble, heaviest first."""
        counted = [entry for entry in self.entries if entry.weight > 0]
        return sorted(counted, key=lambda entry: -entry.weight)


@dataclass(frozen=True, eq=False)
class _Work:
    """A candidate to be trained on some folds."""

    candidate: Candidate
    folds: tuple[int, ...]
    seconds: float | None = None
    """What it is expected to take; None if nobody knows."""


@dataclass(eq=False)
class _Running:
    inputs: GraphInputs
    target: Target
    folds: tuple[Fold, ...]
    metric: str
    start: float
    end: float
    keep: Keep
    train: Train
    say: Say | None
    workers: int
    entries: list[Entry] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def finish(self, work: Iterable[_Work], until: float) -> None:
        """Train candidates side by side, in their order, as long as time allows."""
        queue = list(work)[::-1]

        def take() -> None:
            while not self.stopped.is_set():
                with self.lock:
                    left = until - time.monotonic()
                    if left <= 0 or not queue:
                        return
                    even = self.workers * left / len(queue)
                    next_one = queue.pop()
                if next_one.candidate.ahead > _MOST_AHEAD * left:
                    continue
                if next_one.seconds is None and left < self._usual_seconds():
                    continue  # cut short, it would look worse than it is
                if next_one.seconds is None:
                    self._train(next_one, until - max(left - _FAIR_SHARES * even, 0))
                elif next_one.seconds < left:
                    self._train(next_one, until)

        with ThreadPoolExecutor(self.workers) as pool:
            running = [pool.submit(take) for _ in range(self.workers)]
            try:
                wait(running)
            except KeyboardInterrupt:
                self.stopped.set()
                raise
            for each in running:
                each.result()

    def _usual_seconds(self) -> float:
        """What half of the candidates have taken, or less."""
        with self.lock:
            return median([entry.seconds for entry in self.entries] or [0.0])

    def _train(self, work: _Work, until: float) -> None:
        """Train a candidate on some folds, and rank it."""
        candidate = work.candidate
        folds = {number: self.folds[number] for number in work.folds}

        def out_of_time() -> bool:
            return self.stopped.is_set() or time.monotonic() > until

        job = Job(self.inputs, self.target, folds, self.metric, until, out_of_time)
        name = f"{candidate.name} {'-'.join(map(str, folds))}"
        self._show(candidate.name)
        (member, out), seconds = self.keep(name, lambda: self.train(candidate, job))
        with self.lock:
            self._rank(candidate, member, out, seconds)
        self._show(candidate.name)

    def _rank(
        self, candidate: Candidate, member: Member, out: OutOfFold, seconds: float
    ) -> None:
        entry = next((e for e in self.entries if e.candidate is candidate), None)
        if entry is None:
            entry = Entry(candidate, member, out, seconds)
            self.entries.append(entry)
        else:
            held_out = [self.folds[number].held_out for number in out.folds]
            entry.member = entry.member.joined(member)
            entry.out = entry.out.joined(out, np.concatenate(held_out))
            entry.seconds += seconds
        entry.score = self._judge(entry)
        self.entries.sort(key=lambda each: (-each.score, each.name))

    def _judge(self, entry: Entry) -> float:
        """The score on the nodes that its folds hold out."""
        held_out = [self.folds[number].held_out for number in entry.out.folds]
        rows = np.concatenate(held_out)
        y = self.target.values[rows]
        return SCORES[self.metric].function(y, entry.out.predicted[rows])

    def _show(self, name: str) -> None:
        if self.say is not None:
            with self.lock:
                best = self.entries[0].score if self.entries else np.nan
                gone = time.monotonic() - self.start
                show = self.say("fit", name)
                show(int(gone), int(self.end - self.start), float(best))


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
        train: Trains a candidate; elsewhere, say.
        workers: How many candidates are trained side by side.
        seed: Of folds and first weights.
        say: Shows how it goes.
        extra: Further candidates, tried last.
    """
    start = time.monotonic()
    count = min(NUM_FOLDS, len(labelled) // 4)
    folds = make_folds(target, labelled, max(2, count), seed)
    end = start + seconds - min(_RESERVED_SHARE * seconds, _RESERVED_MOST)
    running = _Running(
        inputs, target, folds, metric, start, end, keep, train, say, workers
    )
    interrupted = False
    try:
        _rounds(running, seed, extra)
    except KeyboardInterrupt:
        if not running.entries:
            raise
        interrupted = True
    rows = _weigh(running)
    return Tournament(running.entries, folds, rows, interrupted)


def _rounds(running: _Running, seed: int, extra: Sequence[Candidate]) -> None:
    everything = tuple(range(len(running.folds)))
    is_small = running.inputs.size <= SMALL
    share = 1.0 if is_small else _ROUND_1_SHARE
    until = running.start + share * (running.end - running.start)
    many = running.inputs.num_nodes >= _DEEP_NODES
    running.finish(
        [
            _Work(one, everything if is_small or one.cheap else everything[:1])
            for one in [*candidates(seed), *extra]
            if (many or not one.deep) and _fits(running, one)
        ],
        until,
    )
    running.finish(_further_folds(running, everything), running.end)
    for draw in range(1, _MOST_DRAWS + 1):
        _draw_again(running, everything, seed, draw)


def _further_folds(running: _Running, everything: tuple[int, ...]) -> list[_Work]:
    """The best candidates on the folds they have not seen, one fold after another.

    There are as many candidates as time allows, at least a few.
    """
    left = running.workers * max(running.end - time.monotonic(), 0)
    kept: list[Entry] = []
    for entry in running.entries:
        unseen = len(everything) - len(entry.out.folds)
        left -= unseen * entry.seconds / len(entry.out.folds)
        if left > 0 or len(kept) < _KEPT:
            kept.append(entry)
    return [
        _Work(entry.candidate, (number,), entry.seconds / len(entry.out.folds))
        for number in everything
        for entry in kept
        if number not in entry.out.folds
    ]


def _fits(running: _Running, candidate: Candidate) -> bool:
    """Whether there is memory to train a candidate, or need of it."""
    nodes = running.inputs.num_nodes
    room = available_bytes(torch.device("cpu")) / 2 / running.workers
    if candidate.only_if_large:
        return _BYTES_PER_STATE * nodes * _USUAL_LAYERS > room
    return _BYTES_PER_STATE * nodes * candidate.layers <= room


def _draw_again(
    running: _Running, everything: tuple[int, ...], seed: int, draw: int
) -> None:
    """The best networks once more, with other first weights."""
    again = {each.name: each for each in candidates(seed + 1000 * draw)}
    whole = [e for e in running.entries if len(e.out.folds) == len(everything)]
    networks = [e for e in whole if e.member.kind == "network" and e.name in again]
    work = []
    for entry in networks[:3]:
        name = f"{entry.name}, seed {draw + 1}"
        named = replace(again[entry.name], name=name, family=entry.name)
        work.append(_Work(named, everything, 1.2 * entry.seconds))
    running.finish(work, running.end)


def _weigh(running: _Running) -> Numbers:
    """Weigh candidates that were judged on the same nodes; returns these nodes."""
    folds = running.folds
    # Candidates have seen the first folds, some more of them than others. Folds count
    # that all of the best have seen, or more where these are few nodes.
    count = min(len(entry.out.folds) for entry in running.entries[:_KEPT])
    most = max(len(entry.out.folds) for entry in running.entries)
    while count < most and sum(len(f.held_out) for f in folds[:count]) < _ENOUGH:
        count += 1
    entries = [e for e in running.entries if len(e.out.folds) >= count]
    shared = set.intersection(*(set(entry.out.folds) for entry in entries))
    rows = np.concatenate([folds[number].held_out for number in sorted(shared)])
    smooth = SCORES["r2" if running.target.is_number else "log-loss"]
    weights = blend_weights(
        SCORES[running.metric],
        smooth,
        running.target.values[rows],
        [entry.out.predicted[rows] for entry in entries],
        [entry.candidate.family or entry.name for entry in entries],
    )
    for entry, weight in zip(entries, weights, strict=True):
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
