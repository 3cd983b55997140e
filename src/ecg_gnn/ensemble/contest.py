"""Candidates trained side by side until time runs out, and ranked as they finish."""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from statistics import median

import numpy as np

from ecg_gnn.ensemble.candidates import Candidate
from ecg_gnn.ensemble.certainty import Array, Scaling, scaled
from ecg_gnn.ensemble.folds import Fold, OutOfFold
from ecg_gnn.ensemble.inputs import GraphInputs, Target
from ecg_gnn.ensemble.job import Job
from ecg_gnn.ensemble.members import Fitted, Member
from ecg_gnn.ensemble.scoring import SCORES
from ecg_gnn.system.checks import not_finite

_FAIR_SHARES = 3
"""A candidate may take this many times what an even division of a round gives it."""
_MOST_AHEAD = 0.4
"""Of what is left, the most that something may take which no deadline stops."""

Say = Callable[[str, str], Callable[[int, int, float], None]]
Keep = Callable[[str, Callable[[], Fitted], Callable[[], bool]], tuple[Fitted, float]]
"""Trains, or reads what was trained before; with the seconds that it took.

What was stopped before it was done, as the last argument says, is not kept.
"""
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
    scaling: Scaling | None = None
    """Makes its probabilities as sure as they should be, beside those of others."""
    cut_short: bool = False
    """Whether time ran out before it was trained to the end; it may look worse."""

    @property
    def held_out(self) -> Array:
        """What it says of nodes that it was not trained on, calibrated."""
        return scaled(self.out.predicted, self.scaling)

    @property
    def name(self) -> str:
        """As the leaderboard calls it."""
        return self.candidate.name


@dataclass(frozen=True, eq=False)
class Work:
    """A candidate to be trained on some folds."""

    candidate: Candidate
    folds: tuple[int, ...]
    seconds: float | None = None
    """What it is expected to take; None if nobody knows."""


@dataclass(eq=False)
class Contest:
    """A search while it is under way: what is left of its time, and who leads."""

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
    device: str
    entries: list[Entry] = field(default_factory=list)
    error: Exception | None = None
    failed: dict[str, str] = field(default_factory=dict)
    begun: bool = False
    reserved: float = 0.0
    """Seconds of what is under way that no deadline stops."""
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

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
                    # A candidate that is cut short would look worse than it is.
                    if left >= self._usual_seconds() or not self.entries:
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

    def _usual_seconds(self) -> float:
        """What half of the candidates have taken, or less."""
        with self.lock:
            return median([entry.seconds for entry in self.entries] or [0.0])

    def _train(self, work: Work, until: float) -> None:
        """Train a candidate on some folds, and rank it."""
        candidate = work.candidate
        folds = {number: self.folds[number] for number in work.folds}

        def out_of_time() -> bool:
            return self.stopped.is_set() or time.monotonic() > until

        given = (self.inputs, self.target, folds, self.metric, until)
        job = Job(*given, out_of_time, self.stopped.is_set, self.device)
        numbers = "-".join(map(str, folds))
        name = f"{candidate.name} {numbers} of {len(self.folds)}"
        self._show(candidate.name)
        try:
            fitted, seconds = self.keep(
                name, lambda: self.train(candidate, job), self.stopped.is_set
            )
            self._check_finite(fitted[1], folds.values())
        except Exception as error:  # if one fails, the others continue
            self.failed[candidate.name] = f"{type(error).__name__}: {error}"
            self.error = error
            return
        late = time.monotonic() > until
        with self.lock:
            self._rank(candidate, *fitted, seconds, cut_short=late)
        self._show(candidate.name)

    def _check_finite(self, out: OutOfFold, folds: Iterable[Fold]) -> None:
        rows = np.concatenate([fold.held_out for fold in folds])
        if not np.isfinite(out.predicted[rows]).all():
            said = "it predicts NaN or infinity"
            raise not_finite(said, float(np.abs(self.inputs.x).max()))

    def _rank(
        self,
        candidate: Candidate,
        member: Member,
        out: OutOfFold,
        seconds: float,
        *,
        cut_short: bool,
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
        entry.cut_short |= cut_short
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
                budget = int(self.end - self.start)
                gone = min(int(time.monotonic() - self.start), budget)
                self.say("fit", f"{name}, seconds")(gone, budget, float(best))
