"""Time a short training first, then train everything split by split."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from ecg_gnn.advise.budget import OutOfTime, Stopwatch
from ecg_gnn.advise.contenders import PLAIN, Contender
from ecg_gnn.advise.plan import Cost, Plan, Speed, choose_plan
from ecg_gnn.study.records import Record

Stop = Literal["time", "interrupted"]
Round = Mapping[Contender, Record]
OnRound = Callable[[Round, int, int], None]
"""Told of every finished split: ``(its records, done, planned)``."""

_WARM_UP, _FEW = 1, 2
_MORE = range(6, 41)
"""Steps of the short trainings; of the longest, as many as a share of the budget."""
_SHARE = 0.05


class Train(Protocol):
    """Trains one contender; stops with ``OutOfTime`` when the budget is spent."""

    def __call__(
        self, contender: Contender, split: int, steps: int, *, keep: bool = True
    ) -> Record:
        """The record of a contender on a split after so many steps.

        Args:
            contender: What to train.
            split: On which split.
            steps: How long, the weak classifier included.
            keep: Whether others may use its embedding.
        """

    def is_shared(self, contender: Contender) -> bool:
        """Whether its embedding is trained once for all splits."""


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """What was trained: every contender on the same splits."""

    whole: Plan
    """What there would have been time for without a budget"""
    plan: Plan | None
    """What was chosen of it; None where even timing it took too long"""
    speed: Speed | None
    records: tuple[Round, ...]
    """A finished split each"""
    stop: Stop | None
    """Why there are not more of them; None if all are there"""

    def of(self, contender: Contender) -> list[Record]:
        """One contender's records."""
        return [found[contender] for found in self.records]


def run_rounds(
    train: Train, whole: Plan, watch: Stopwatch, on_round: OnRound | None = None
) -> Rounds:
    """Choose what fits into the time, and train it.

    A split counts when every contender is trained on it, so that whenever this is
    stopped all have been seen on the same splits.
    """
    speed: Speed | None = None
    plan: Plan | None = None
    stop: Stop | None = None
    done: list[Round] = []
    try:
        speed = measure_speed(train, whole, watch)
        plan = choose_plan(whole, speed, watch.left())
        seconds = 0.0
        for split in plan.splits:
            if seconds > watch.left():
                raise OutOfTime
            started = watch.spent()
            done.append(_train_all(train, plan, split, watch))
            seconds = watch.spent() - started
            if on_round is not None:
                on_round(done[-1], len(done), len(plan.splits))
    except OutOfTime:
        stop = "time"
    except KeyboardInterrupt:
        stop = "interrupted"
    return Rounds(whole=whole, plan=plan, speed=speed, records=tuple(done), stop=stop)


def _train_all(train: Train, plan: Plan, split: int, watch: Stopwatch) -> Round:
    found = {}
    for contender in plan.contenders:
        watch.check()
        found[contender] = train(contender, split, plan.steps)
    return found


def measure_speed(train: Train, plan: Plan, watch: Stopwatch) -> Speed:
    """Time short trainings of the plain network and of every embedding.

    Two lengths tell what each step costs from what is done once. What is found is
    thrown away: nothing is chosen by it.
    """
    split = plan.splits[0]
    probes = _probes(plan.candidates)
    for probe in (PLAIN, probes[0]):  # kernels are built and memory is claimed here
        train(probe, split, _WARM_UP, keep=False)
    started = watch.spent()
    few = {p: _time(train, p, split, _FEW, watch) for p in (PLAIN, *probes)}
    longer = _longer(watch.spent() - started, watch.budget)
    more = {p: _time(train, p, split, longer, watch) for p in (PLAIN, *probes)}
    costs = {p: _line(few[p].training, more[p].training, longer) for p in more}
    embedding = {p: _line(few[p].before, more[p].before, longer) for p in probes}
    return Speed(
        plain=costs[PLAIN],
        evolved=max((costs[p] for p in probes), key=lambda cost: cost.seconds(100)),
        embeddings={p.embedding: embedding[p] for p in probes},
        shared=frozenset(p.embedding for p in probes if train.is_shared(p)),
    )


def _longer(seconds: float, budget: float) -> int:
    """Steps for the longer of two timings, after one of few took so many seconds."""
    fitting = _FEW * _SHARE * budget / max(seconds, 1e-9)
    return int(min(max(fitting, _MORE[0]), _MORE[-1]))


def _probes(candidates: Sequence[Contender]) -> list[Contender]:
    """Every embedding once, with its largest k."""
    largest = max(each.k or 0 for each in candidates)
    return [each for each in candidates if each.k == largest]


class _Timed(NamedTuple):
    training: float
    """Seconds of the classifier's steps"""
    before: float
    """Seconds of all else: the weak classifier and its graph"""


def _time(
    train: Train, contender: Contender, split: int, steps: int, watch: Stopwatch
) -> _Timed:
    started = watch.spent()
    seconds = train(contender, split, steps, keep=False).seconds
    return _Timed(seconds, max(0.0, watch.spent() - started - seconds))


def _line(few: float, more: float, longer: int) -> Cost:
    """The cost that two timings lie on; noise makes nothing cheaper than nothing."""
    per_step = max(0.0, (more - few) / (longer - _FEW))
    return Cost(max(0.0, few - _FEW * per_step), per_step)
