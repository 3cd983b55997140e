"""Trains all contenders split by split, after timing a short training of each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ecg_gnn.advise.question import PLAIN, Contender, Plan, Question
from ecg_gnn.advise.time_budget import Cost, OutOfTime, Speed, Stopwatch, choose_plan
from ecg_gnn.advise.verdict import Advice, Round
from ecg_gnn.config import RunConfig, reads_labels
from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.study.records import Record
from ecg_gnn.study.units import UnitRunner
from ecg_gnn.tabular.named_graph import homophily
from ecg_gnn.train import Progress

Display = Callable[[str, str], Progress]
"""Starts to show the progress of one piece of work, given a title and a name."""
OnRound = Callable[[Round, int, int], None]
"""Called after every finished split with ``(its records, done, planned)``."""

# Steps of the short trainings that are timed. The longest gets as many steps as fit
# into a share of the budget, within these limits.
_WARM_UP_STEPS, _SHORT_STEPS = 1, 2
_MIN_LONG_STEPS, _MAX_LONG_STEPS = 6, 40
_TIMING_SHARE = 0.05


@dataclass(frozen=True)
class Trainer:
    """Trains contenders with the pipeline, and checks the stopwatch meanwhile."""

    dataset: GraphDataset
    config: RunConfig
    cache: EmbeddingCache | None
    watch: Stopwatch
    display: Display | None = None

    def __call__(
        self, contender: Contender, split: int, steps: int, *, keep: bool = True
    ) -> Record:
        """Train one contender on one split.

        Args:
            contender: What to train.
            split: The split to train on.
            steps: Training steps, of the embedder as well.
            keep: Whether its embedding may be used again.

        Raises:
            OutOfTime: When the budget is spent.
        """
        title = f"{f'split {split}' if keep else 'timing'} · {contender.label}"
        settings = {"train.steps": steps, "embed.steps": steps}
        if contender.k is not None:
            settings["evolve.k"] = contender.k
        runner = UnitRunner(
            dataset=self.dataset,
            config=replaced(self.config, settings),
            run_id="",
            made_with={},
            cache=self.cache if keep else None,
            on_progress=lambda _, work: self._progress(title, work),
        )
        return runner((contender.variant, split))

    def is_shared(self, contender: Contender) -> bool:
        """Whether all splits share its embedding, because no part reads labels."""
        return not reads_labels(contender.embedding)

    def _progress(self, title: str, work: str) -> Progress:
        show = None if self.display is None else self.display(title, work)

        def tick(done: int, total: int, score: float) -> None:
            if show is not None:
                show(done, total, score)
            self.watch.check()

        return tick


def advise(
    question: Question,
    watch: Stopwatch,
    *,
    cache: EmbeddingCache | None = None,
    display: Display | None = None,
    on_round: OnRound | None = None,
) -> Advice:
    """Train baseline, ECG and controls within the budget, and compare them.

    Args:
        question: The graph, and what to try on it.
        watch: The budget, running since the caller's work began.
        cache: Where embeddings are kept; a temporary folder by default.
        display: Shows the progress of every training.
        on_round: Called after every finished split.
    """
    with TemporaryDirectory(prefix="ecg-gnn-") as temporary:
        cache = cache or EmbeddingCache(Path(temporary))
        train = Trainer(question.dataset, question.config, cache, watch, display)
        return run_rounds(train, question, watch, on_round)


def run_rounds(
    train: Trainer, question: Question, watch: Stopwatch, on_round: OnRound | None
) -> Advice:
    """Choose what fits into the time, and train it.

    A split counts once every contender is trained on it, so that all have been seen on
    the same splits whenever this stops.
    """
    speed: Speed | None = None
    plan, rounds = question.whole, list[Round]()
    stop: Literal["time", "interrupted"] | None = None
    try:
        speed = measure_speed(train, plan, watch)
        plan = choose_plan(plan, speed, watch.left())
        round_seconds = 0.0
        for split in plan.splits:
            if round_seconds > watch.left():
                raise OutOfTime
            started = watch.spent()
            records = {}
            for contender in plan.contenders:
                watch.check()
                records[contender] = train(contender, split, plan.steps)
            rounds.append(records)
            round_seconds = watch.spent() - started
            if on_round is not None:
                on_round(records, len(rounds), len(plan.splits))
    except OutOfTime:
        stop = "time"
    except KeyboardInterrupt:
        stop = "interrupted"
    return Advice(
        question=question,
        budget=watch.budget,
        spent=watch.spent(),
        graph=homophily(question.dataset),
        plan=plan,
        speed=speed,
        rounds=tuple(rounds),
        stop=stop,
    )


def measure_speed(train: Trainer, plan: Plan, watch: Stopwatch) -> Speed:
    """Time short trainings of the plain network and of every embedding.

    Two lengths separate the cost of a step from what is done once. The scores are
    thrown away: nothing is chosen by them.
    """
    largest_k = max(each.k or 0 for each in plan.candidates)
    probes = [each for each in plan.candidates if each.k == largest_k]

    def time_training(contender: Contender, steps: int) -> tuple[float, float]:
        """Seconds of the classifier's steps, and of all else (embedding, search)."""
        started = watch.spent()
        seconds = train(contender, plan.splits[0], steps, keep=False).seconds
        return seconds, max(0.0, watch.spent() - started - seconds)

    for probe in (PLAIN, probes[0]):  # kernels are built and memory is claimed here
        time_training(probe, _WARM_UP_STEPS)
    started = watch.spent()
    short = {each: time_training(each, _SHORT_STEPS) for each in (PLAIN, *probes)}
    seconds = max(watch.spent() - started, 1e-9)
    fitting = _SHORT_STEPS * _TIMING_SHARE * watch.budget / seconds
    steps = int(min(max(fitting, _MIN_LONG_STEPS), _MAX_LONG_STEPS))
    long = {each: time_training(each, steps) for each in (PLAIN, *probes)}
    training, embedding = (
        {each: _fit_cost(short[each][part], long[each][part], steps) for each in long}
        for part in (0, 1)
    )
    return Speed(
        plain=training[PLAIN],
        evolved=max((training[p] for p in probes), key=lambda cost: cost.seconds(100)),
        embeddings={probe.embedding: embedding[probe] for probe in probes},
        shared=frozenset(p.embedding for p in probes if train.is_shared(p)),
    )


def _fit_cost(short: float, long: float, steps: int) -> Cost:
    """The line through two timings; noise must not make any part negative."""
    per_step = max(0.0, (long - short) / (steps - _SHORT_STEPS))
    return Cost(max(0.0, short - _SHORT_STEPS * per_step), per_step)
