"""Trains all contenders split by split, after timing a short training of each kind."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from ecg_gnn.advise.question import Contender, Question
from ecg_gnn.advise.time_budget import OutOfTime, Stopwatch, choose_plan, measure_speed
from ecg_gnn.advise.verdict import Advice, Round
from ecg_gnn.config import RunConfig
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
        """Train one contender on one split, or raise ``OutOfTime``.

        ``steps`` are those of the embedder as well; only what is kept is used again.
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

    The watch has run since the caller's work began. Without a cache, embeddings are
    kept in a temporary folder.
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
    speed, plan, rounds = None, question.whole, list[Round]()
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
    spent, graph = watch.spent(), homophily(question.dataset)
    return Advice(
        question, graph, plan, speed, tuple(rounds), stop, watch.budget, spent
    )
