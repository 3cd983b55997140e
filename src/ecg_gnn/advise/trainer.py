"""Trains contenders by the pipeline, and looks at the watch while doing so."""

from collections.abc import Callable
from dataclasses import dataclass

from ecg_gnn.advise.budget import Stopwatch
from ecg_gnn.advise.contenders import Contender
from ecg_gnn.config import RunConfig
from ecg_gnn.config.dotted import replaced
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.pipeline.workspace import Workspace, make_embedder
from ecg_gnn.study.records import Record
from ecg_gnn.study.units import UnitRunner
from ecg_gnn.train import Progress

Display = Callable[[str, str], Progress]
"""Starts a display of one piece of work, by a title and a name."""


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """See :class:`ecg_gnn.advise.rounds.Train`."""

    dataset: GraphDataset
    config: RunConfig
    cache: EmbeddingCache | None
    watch: Stopwatch
    display: Display | None = None

    def __call__(
        self, contender: Contender, split: int, steps: int, *, keep: bool = True
    ) -> Record:
        """Train one contender on one split."""
        title = f"{f'split {split}' if keep else 'timing'} · {contender.label}"
        runner = UnitRunner(
            dataset=self.dataset,
            config=self._settings(contender, steps),
            run_id="",
            made_with={},
            cache=self.cache if keep else None,
            on_progress=lambda _, work: self._watched(title, work),
        )
        return runner((contender.variant, split))

    def is_shared(self, contender: Contender) -> bool:
        """Whether no part of its embedding reads labels, which splits differ in."""
        parts = contender.variant.embeddings
        made = [make_embedder(part, self.config, Workspace()) for part in parts]
        return not any(embedder.uses_labels for embedder in made)

    def _settings(self, contender: Contender, steps: int) -> RunConfig:
        changed = {"train.steps": steps, "embed.steps": steps}
        if contender.k is not None:
            changed["evolve.k"] = contender.k
        return replaced(self.config, changed)

    def _watched(self, title: str, work: str) -> Progress:
        show = None if self.display is None else self.display(title, work)

        def tick(done: int, total: int, score: float) -> None:
            if show is not None:
                show(done, total, score)
            self.watch.check()

        return tick
