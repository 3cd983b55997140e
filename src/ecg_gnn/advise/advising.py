"""From a question and a running watch to advice."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ecg_gnn.advise.advice import Advice
from ecg_gnn.advise.budget import Stopwatch
from ecg_gnn.advise.rounds import OnRound, run_rounds
from ecg_gnn.advise.settings import Question
from ecg_gnn.advise.trainer import Display, Trainer
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.tabular.import_report import homophily


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
        cache: Where embeddings are kept; by default only as long as this lasts.
        display: Shown how it goes.
        on_round: Told of every finished split.
    """
    dataset, config = question.dataset, question.config
    with TemporaryDirectory(prefix="ecg-gnn-") as temporary:
        train = Trainer(
            dataset=dataset,
            config=config,
            cache=cache or EmbeddingCache(Path(temporary)),
            watch=watch,
            display=display,
        )
        rounds = run_rounds(train, question.whole, watch, on_round)
    return Advice(
        dataset=dataset.name,
        metric=dataset.metric,
        note=dataset.note,
        config=config,
        budget=watch.budget,
        spent=watch.spent(),
        rounds=rounds,
        graph=homophily(dataset),
    )
