"""A search under way: candidates trained side by side until time runs out."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.certainty import Scaling, choose_multipliers, scaled
from ecg_gnn.ensemble.inputs import Floats, GraphInputs, Numbers, Target
from ecg_gnn.ensemble.members import Fitted, Fold, Job, Member
from ecg_gnn.ensemble.scoring import SCORES, Array, Score, interval
from ecg_gnn.ensemble.weighted import Ensemble, read_finished, write_finished
from ecg_gnn.system.checks import not_finite

# A candidate may take this many times what an even division of a round gives it.
_FAIR_SHARES = 3
# Of what is left, the most that something may take which no deadline stops.
_MOST_AHEAD = 0.4
_STEPS = 25
_DRAWS = 20
# Nodes at which greedy weights and those by score alone count the same.
_HALF_TRUSTED = 400
# A member this much worse than another has 1/e of its weight by score alone.
_SPREAD = 0.02
# Gains below this are noise; a smaller ensemble is as good.
_LEAST_GAIN = 1e-5
# Members that count for less than this are left out.
_LEAST_WEIGHT = 0.01
# Greedy steps look at the loss, which is smooth, and a little at the metric.
_METRIC_SHARE = 0.1

Say = Callable[[str, str], Callable[[int, int, float], None]]
"""Starts a display of one piece of work, by a title and a name."""
Train = Callable[[Candidate, Job], Fitted]  # here or on another machine


@dataclass(eq=False)
class Entry:
    """A candidate that was trained on some folds."""

    candidate: Candidate
    member: Member
    out: Floats  # what is said of nodes by models that were not trained on them
    folds: tuple[int, ...]  # which there are models of
    seconds: float
    score: float = -np.inf
    weight: float = 0.0
    scaling: Scaling | None = None  # makes its probabilities as sure as they should be
    multipliers: Array | float = 1.0  # of its probabilities, when it says a class
    cut_short: bool = False  # by the clock, so that it may look worse than it is

    @property
    def held_out(self) -> Array:
        """What it says of nodes that it was not trained on, calibrated."""
        return scaled(self.out, self.scaling)

    @property
    def decided(self) -> Array:
        """What it says there, as a score reads it."""
        return self.out * self.multipliers

    @property
    def name(self) -> str:
        return self.candidate.name


class Work(NamedTuple):
    """A candidate to be trained on some folds."""

    candidate: Candidate
    folds: Sequence[int]
    seconds: float | None = None  # what it should take; None if nobody knows


@dataclass(eq=False, kw_only=True)
class Contest:
    """A search: what it may use, what is left of its time, who leads, what it found."""

    inputs: GraphInputs
    target: Target
    folds: Mapping[int, Fold]
    metric: str
    start: float
    end: float
    train: Train = Candidate.train
    work: Path | None = None  # a folder for what is finished, to resume after a kill
    say: Say | None = None
    workers: int = 1
    device: str = "cpu"
    entries: list[Entry] = field(default_factory=list)  # best first
    failed: dict[str, str] = field(default_factory=dict)  # candidates, and why
    error: Exception | None = None  # the last one
    interrupted: bool = False  # by the user
    rows: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    """Nodes that every member of the ensemble has been judged on."""
    best: str = ""  # the name of the best single candidate on these
    ensemble: Ensemble = field(init=False)  # the members, weighed and calibrated
    said: Array = field(init=False)  # by it of these nodes, as a score reads it
    seconds: float = 0.0  # that all of it took
    begun: bool = False
    reserved: float = 0.0  # seconds of what is under way that no deadline stops
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def score(self) -> tuple[float, tuple[float, float]]:
        """The ensemble's, out of fold, and where it may lie, on the labels' scale."""
        score, scale = SCORES[self.metric], self.ensemble.centre[1]
        y = self.target.values[self.rows]
        value = score.shown(score.function(y, self.said), scale)
        return value, interval(score, y, self.said, scale=scale)

    def held_out(self, numbers: Iterable[int]) -> Numbers:
        """The nodes that these folds hold out."""
        return np.concatenate([self.folds[number].held_out for number in numbers])

    def finish(self, work: Iterable[Work], until: float) -> None:
        """Train candidates side by side, in their order, as long as time allows."""
        queue = list(work)[::-1]

        def take() -> None:
            while not self.stopped.is_set():
                with self.lock:
                    left = until - time.monotonic()
                    # The first, which is cheap, is trained however late it is.
                    if not queue or (left <= 0 and self.begun):
                        return
                    self.begun = True
                    even = self.workers * left / len(queue)
                    next_one = queue.pop()
                    ahead = next_one.candidate.ahead
                    if ahead and self.reserved + ahead > _MOST_AHEAD * left:
                        continue
                    self.reserved += ahead
                if next_one.seconds is None:
                    with self.lock:
                        taken = [entry.seconds for entry in self.entries]
                    # A candidate that is cut short would look worse than it is.
                    if not taken or left >= median(taken):
                        spare = max(left - _FAIR_SHARES * even, 0)
                        self._train(next_one, until - spare)
                elif next_one.seconds < left:
                    self._train(next_one, until)
                with self.lock:
                    self.reserved -= ahead

        with ThreadPoolExecutor(self.workers) as pool:
            try:
                running = [pool.submit(take) for _ in range(self.workers)]
                wait(running)
            except KeyboardInterrupt:
                self.stopped.set()
                raise
            for each in running:
                each.result()
        if self.error is not None and not self.entries:
            raise self.error

    def _train(self, work: Work, until: float) -> None:
        """Train a candidate on some folds, and rank it."""
        candidate = work.candidate
        folds = {number: self.folds[number] for number in work.folds}
        given = self.inputs, self.target, folds, self.metric, until
        job = Job(*given, self.stopped.is_set, self.device)
        self._show(candidate.name)
        try:
            (member, out), seconds = self._trained_or_read(candidate, job)
            if not np.isfinite(out[self.held_out(work.folds)]).all():
                largest = float(np.abs(self.inputs.x).max())
                raise not_finite("it predicts NaN or infinity", largest)
        except Exception as error:  # if one fails, the others continue
            self.failed[candidate.name] = f"{type(error).__name__}: {error}"
            self.error = error
            return
        cut_short = time.monotonic() > until
        with self.lock:
            found = member, out, tuple(folds), seconds
            self._rank(Entry(candidate, *found, cut_short=cut_short))
        self._show(candidate.name)

    def _trained_or_read(self, candidate: Candidate, job: Job) -> tuple[Fitted, float]:
        """What a candidate learned, now or before a kill; and in how many seconds."""
        path = None
        if self.work is not None:
            numbers = "-".join(map(str, job.folds))
            name = f"{candidate.name} {numbers} of {len(self.folds)}"
            path = self.work / f"{name.replace(' ', '_')}.safetensors"
            if (finished := read_finished(path)) is not None:
                return finished
        start = time.monotonic()
        fitted = self.train(candidate, job)
        seconds = time.monotonic() - start
        if path is not None and not self.stopped.is_set():
            write_finished(path, fitted, seconds)
        return fitted, seconds

    def _rank(self, new: Entry) -> None:
        """Add what was learned, to what the same candidate learned before if it did."""
        entry = next((e for e in self.entries if e.candidate is new.candidate), None)
        if entry is None:
            self.entries.append(entry := new)
        else:
            entry.member = entry.member.joined(new.member)
            held_out = self.held_out(new.folds)
            entry.out = entry.out.copy()  # it may be read just now
            entry.out[held_out] = new.out[held_out]
            entry.folds += new.folds
            entry.seconds += new.seconds
            entry.cut_short |= new.cut_short
        rows, score = self.held_out(entry.folds), SCORES[self.metric]
        y, said = self.target.values[rows], entry.out[rows]
        if score.balanced:
            entry.multipliers, said = choose_multipliers(score, y, said)
        entry.score = score.function(y, said)
        self.entries.sort(key=lambda each: (-each.score, each.name))

    def _show(self, name: str) -> None:
        if self.say is not None:
            with self.lock:
                best = self.entries[0].score if self.entries else np.nan
                budget = int(self.end - self.start)
                gone = min(int(time.monotonic() - self.start), budget)
                self.say("fit", f"{name}, seconds")(gone, budget, float(best))


def blend_weights(
    score: Score,
    smooth: Score,
    y: Array,
    predicted: Sequence[Array],
    families: Sequence[str],
) -> Array:
    """Weights of the members, which sum to one.

    Caruana et al. (2004): add, with replacement, whichever family helps most. Done on
    several draws of the nodes and averaged, so that no accident of one draw decides.
    The nodes are such that no member was trained on. Members that differ only in their
    first weights are one family, and count the same. ``smooth`` is the loss as a score.
    """
    names = list(dict.fromkeys(families))
    belongs = np.array([[name == one for one in families] for name in names])
    means = belongs / belongs.sum(axis=1, keepdims=True)  # [families, members]
    stacked = np.einsum("fm,mnw->fnw", means, np.stack(predicted))
    generator = np.random.default_rng(0)
    total = np.zeros(len(stacked))
    for _ in range(_DRAWS):
        rows = np.sort(generator.permutation(len(y))[: max(2, (2 * len(y)) // 3)])
        total += _greedy(score, smooth, y[rows], stacked[:, rows])
    # On few nodes the choice is mostly luck, and a mean of what is good is safer.
    trust = len(y) / (len(y) + _HALF_TRUSTED)
    weights = trust * total / total.sum() + (1 - trust) * _by_score(score, y, stacked)
    weights[weights < min(_LEAST_WEIGHT, weights.max())] = 0
    return np.asarray(weights / weights.sum() @ means)


def _greedy(score: Score, smooth: Score, y: Array, stacked: Array) -> Array:
    def worth(mean: Array) -> float:
        return smooth.function(y, mean) + _METRIC_SHARE * score.function(y, mean)

    counts = np.zeros(len(stacked))
    mean = np.zeros_like(stacked[0])
    best = -np.inf
    for step in range(_STEPS):
        trials = [worth((mean * step + each) / (step + 1)) for each in stacked]
        place = int(np.argmax(trials))
        if trials[place] <= best + _LEAST_GAIN:
            break
        best = trials[place]
        mean = (mean * step + stacked[place]) / (step + 1)
        counts[place] += 1
    return np.asarray(counts / counts.sum())


def _by_score(score: Score, y: Array, stacked: Array) -> Array:
    scores = np.array([score.function(y, each) for each in stacked])
    odds = np.exp((scores - scores.max()) / _SPREAD)
    return np.asarray(odds / odds.sum())
