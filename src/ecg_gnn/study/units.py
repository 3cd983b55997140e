"""Training units (a variant on a split), one after another or in parallel."""

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any, TypeVar

import torch

from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.variants import Variant
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import Embedder, EmbeddingCache
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import (
    Classification,
    classify,
    embed_together,
    evolve,
)
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.scale import SAMPLER_NAME, world
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.statistics import of_evolved
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import Progress, TrainResult

OnProgress = Callable[[str, str], Progress | None]
Unit = tuple[Variant, int]
"""One training: a variant on a split."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class UnitRunner:
    """Trains units with one configuration; it can be sent to another process."""

    dataset: GraphDataset
    config: RunConfig
    run_id: str
    made_with: dict[str, Any]
    folder: RunFolder | None = None
    cache: EmbeddingCache | None = None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    loader_workers: int = 0
    on_progress: OnProgress | None = field(default=None, repr=False)

    def stored(self, unit: Unit) -> Record | None:
        """The record of a unit that was trained earlier."""
        variant, index = unit
        if self.folder is None:
            return None
        return self.folder.load(variant.file_name(index))

    def __call__(self, unit: Unit) -> Record:
        """Train one unit and keep its record."""
        return self.together([unit])[0]

    def together(self, units: Sequence[Unit]) -> list[Record]:
        """Train several splits of one variant at the same time; keep their records."""
        variant = units[0][0]
        splits = [index for _, index in units]
        names = [variant.file_name(index) for index in splits]
        on_gpu = self.config.device.startswith("cuda")
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(self.config.device)
        shown = f"split {splits[0]}" if len(splits) == 1 else f"{len(splits)} splits"
        workspace = self.workspace(f"{variant.name} · {shown}")
        for part in variant.embeddings if len(splits) > 1 else ():
            chosen = [self.dataset.split(index) for index in splits]
            embed_together(part, self.dataset, chosen, self.config, workspace)
        trainings = [
            self._training(variant, index, name, workspace)
            for index, name in zip(splits, names, strict=True)
        ]
        trained = classify(self.dataset, trainings, self.config, workspace)
        peak = torch.cuda.max_memory_reserved(self.config.device) if on_gpu else None
        records = [
            self._record(variant, index, training, result, peak, len(units))
            for index, training, (_, result) in zip(
                splits, trainings, trained, strict=True
            )
        ]
        if self.folder is not None:
            for name, record in zip(names, records, strict=True):
                self.folder.store(name, record)
        return records

    def graphs(
        self, variant: Variant, index: int, workspace: Workspace
    ) -> list[EvolvedGraph]:
        """The evolved graphs of a unit."""
        split = self.dataset.split(index)
        return [
            evolve(part, self.dataset, split, self.config, workspace)
            for part in variant.embeddings
        ]

    def _training(
        self, variant: Variant, index: int, name: str, workspace: Workspace
    ) -> Classification:
        evolved = self.graphs(variant, index, workspace)
        checkpoint = self.folder.checkpoint(name) if self.folder is not None else None
        return Classification(self.dataset.split(index), evolved, checkpoint)

    def _record(
        self,
        variant: Variant,
        index: int,
        training: Classification,
        result: TrainResult,
        peak: int | None,
        together: int,
    ) -> Record:
        made_here: dict[str, Any] = {
            "threads": torch.get_num_threads(),
            "trained_together": together,
        }
        if self.config.train.batch_size:
            made_here |= {"processes": world().size, "sampler": SAMPLER_NAME}
        return Record(
            id=self.run_id,
            variant=variant.name,
            embedding=variant.embedding,
            model=self.config.model.name,
            split=index,
            seed=self.config.seed,
            best_step=result.best_step,
            val=result.val,
            test=_checked_score(result.test),
            seconds=result.seconds,
            peak_memory_mb=None if peak is None else peak / 2**20,
            evolved_statistics=[
                of_evolved(EvolvedGraph.of(graph), self.dataset)
                for graph in training.evolved
            ],
            losses=_finite(result.losses),
            val_scores=_finite(result.val_scores),
            test_scores=_finite(known(result.test_scores)),
            provenance={**self.made_with, **made_here},
        )

    def workspace(self, title: str) -> Workspace:
        """What the pipeline needs, its progress shown under a title."""
        own = Workspace(
            cache=self.cache,
            embedders=self.embedders,
            loader_workers=self.loader_workers,
        )
        if (on_progress := self.on_progress) is None:
            return own
        return replace(own, progress=lambda work: on_progress(title, work))


def _finite(values: Sequence[float]) -> list[float | None]:
    """JSON has no NaN or infinity: steps after a divergence are null."""
    return [value if math.isfinite(value) else None for value in values]


def _checked_score(score: float | None) -> float:
    if score is None or not math.isfinite(score):
        raise InputError(
            "'lr' must be small enough for training to stay finite "
            f"(the test score at the best step is {score})"
        )
    return score


def _train_together(
    runner: UnitRunner, units: Sequence[Unit]
) -> Iterator[tuple[Unit, Record]]:
    """All at once; one by one if that fails, so that only the failing ones are lost."""
    try:
        yield from zip(units, runner.together(units), strict=True)
        return
    except (InputError, torch.OutOfMemoryError):
        if len(units) == 1:
            raise
    # Not inside the block above: there the error would keep the units' memory alive.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    failed: InputError | torch.OutOfMemoryError | None = None
    for unit in units:
        try:
            yield unit, runner(unit)
        except (InputError, torch.OutOfMemoryError) as error:
            failed = failed or error
    if failed is not None:
        raise failed


def most_together(config: RunConfig) -> int:
    """How many splits to train at once: one keeps a CPU busy, but not a GPU.

    The size of mini-batches is the user's choice, so they train alone.
    """
    alone = config.train.batch_size or not config.device.startswith("cuda")
    return 1 if alone else 10


def batched(items: Iterable[_Item], most: int) -> Iterator[tuple[_Item, ...]]:
    """Tuples of at most ``most`` items, in order (in ``itertools`` from 3.12 on)."""
    rest = iter(items)
    while batch := tuple(islice(rest, most)):
        yield batch


def run_units(
    runner: UnitRunner,
    units: Sequence[Unit],
    jobs: int,
    pool: WorkerPool | None = None,
) -> Iterator[tuple[Unit, Record]]:
    """Train units and yield each one's record as it is finished.

    Each of several jobs is a process with its share of the threads (their number may
    change how sums are rounded, so records say it). A given pool is left running.
    """
    if jobs == 1:
        for _, same in groupby(units, key=lambda unit: unit[0]):
            for batch in batched(same, most_together(runner.config)):
                yield from _train_together(runner, batch)
        return
    _embed_shared(runner, units)
    with WorkerPool(jobs) if pool is None else nullcontext(pool) as workers:
        yield from workers.each(replace(runner, on_progress=None), units)


def _embed_shared(runner: UnitRunner, units: Sequence[Unit]) -> None:
    """Train BGRL once before the processes start, or each would train its own."""
    for variant, index in units:
        if {"bgrl", "mlp+bgrl"}.intersection(variant.embeddings):
            split = runner.dataset.split(index)
            workspace = runner.workspace("all splits")
            evolve("bgrl", runner.dataset, split, runner.config, workspace)
            return
