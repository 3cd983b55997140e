"""Single trainings (a variant on a split), one after another or several at a time."""

import gc
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from typing import Any, TypeVar

import torch
from torch import Tensor

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import Embedder, EmbeddingCache
from ecg_gnn.embedders import Workspace
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import (
    Classification,
    classify_together,
    embed_together,
    evolve,
)
from ecg_gnn.scale import SAMPLER_NAME, world
from ecg_gnn.study.graphs import shared_graph
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.statistics import Statistics, of_evolved
from ecg_gnn.study.variants import Variant
from ecg_gnn.study.workers import WorkerPool
from ecg_gnn.system.checks import InputError
from ecg_gnn.train import Progress, TrainResult

OnProgress = Callable[[str, str], Progress | None]
Unit = tuple[Variant, int]
Thing = TypeVar("Thing")


@dataclass(frozen=True, kw_only=True)
class UnitRunner:
    """Trains what is not in the folder yet; it can be sent to another process."""

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
        jobs = [
            self._job(variant, index, name, workspace)
            for index, name in zip(splits, names, strict=True)
        ]
        trained = classify_together(self.dataset, jobs, self.config, workspace)
        peak = torch.cuda.max_memory_reserved(self.config.device) if on_gpu else None
        records = [
            self._record(variant, index, job, result, peak, len(units))
            for index, job, (_, result) in zip(splits, jobs, trained, strict=True)
        ]
        if self.folder is not None:
            for name, record in zip(names, records, strict=True):
                self.folder.store(name, record)
        return records

    def _job(
        self, variant: Variant, index: int, name: str, workspace: Workspace
    ) -> Classification:
        split = self.dataset.split(index)
        evolved = [
            shared_graph(part, self.dataset, split, self.config, workspace)
            for part in variant.embeddings
        ]
        checkpoint = self.folder.checkpoint(name) if self.folder is not None else None
        return Classification(split, evolved, checkpoint)

    def _record(
        self,
        variant: Variant,
        index: int,
        job: Classification,
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
            evolved_statistics=[self._statistics(graph) for graph in job.evolved],
            losses=_finite(result.losses),
            val_scores=_finite(result.val_scores),
            test_scores=_finite(known(result.test_scores)),
            provenance={**self.made_with, **made_here},
        )

    def workspace(self, title: str) -> Workspace:
        """What the pipeline is given, its progress shown under a title."""
        own = Workspace(
            cache=self.cache,
            embedders=self.embedders,
            loader_workers=self.loader_workers,
        )
        if (on_progress := self.on_progress) is None:
            return own
        return replace(own, progress=lambda work: on_progress(title, work))

    def _statistics(self, graph: Tensor | EvolvedGraph) -> Statistics:
        return of_evolved(EvolvedGraph.of(graph), self.dataset)


def _finite(values: Sequence[float]) -> list[float | None]:
    """JSON has neither NaN nor infinity: steps after a divergence have null."""
    return [value if math.isfinite(value) else None for value in values]


def _checked_score(score: float | None) -> float:
    if score is None or not math.isfinite(score):
        raise InputError(
            "'lr' must be small enough for training to stay finite "
            f"(the test score at the best step is {score})"
        )
    return score


def _run_group(
    runner: UnitRunner, group: Sequence[Unit]
) -> Iterator[tuple[Unit, Record]]:
    """All at once; one by one if that fails, so that only culprits are lost."""
    try:
        yield from zip(group, runner.together(group), strict=True)
        return
    except (InputError, torch.OutOfMemoryError):
        if len(group) == 1:
            raise
    # Not inside the block above: there the error would keep the group's memory alive.
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    failed: InputError | torch.OutOfMemoryError | None = None
    for unit in group:
        try:
            yield unit, runner(unit)
        except (InputError, torch.OutOfMemoryError) as error:
            failed = failed or error
    if failed is not None:
        raise failed


def most_together(config: RunConfig) -> int:
    """Splits to train at once: a GPU is far from full with one, a CPU is full.

    Batches are as large as their user wants them to be.
    """
    alone = config.train.batch_size or not config.device.startswith("cuda")
    return 1 if alone else 10


def _groups(units: Sequence[Unit], most: int) -> Iterator[list[Unit]]:
    """Units of one variant, at most so many at a time, in their order."""
    for _, same in groupby(units, key=lambda unit: unit[0]):
        yield from (list(group) for group in batched(same, most))


def batched(things: Iterable[Thing], most: int) -> Iterator[tuple[Thing, ...]]:
    """Groups of at most ``most``, in order (``itertools`` has it from 3.12 on)."""
    rest = iter(things)
    while group := tuple(islice(rest, most)):
        yield group


def run_units(
    runner: UnitRunner,
    units: Sequence[Unit],
    jobs: int,
    pool: WorkerPool | None = None,
) -> Iterator[tuple[Unit, Record]]:
    """Train units and yield each one's record as it is finished.

    With several jobs each is a process of its own with a share of this one's threads
    (a sum may round differently with another number of them, so records say it); a
    killed run loses no finished unit either way. A pool that is given is used and
    left running for the next call.
    """
    if jobs == 1:
        for group in _groups(units, most_together(runner.config)):
            yield from _run_group(runner, group)
        return
    _embed_shared(runner, units)
    with WorkerPool(jobs) if pool is None else nullcontext(pool) as workers:
        yield from workers.each(replace(runner, on_progress=None), units)


def _embed_shared(runner: UnitRunner, units: Sequence[Unit]) -> None:
    """Train BGRL once before the processes start, or each would train its own."""
    for variant, index in units:
        if {"bgrl", "mlp+bgrl"}.intersection(variant.embeddings):
            split, workspace = (
                runner.dataset.split(index),
                runner.workspace("all splits"),
            )
            evolve("bgrl", runner.dataset, split, runner.config, workspace)
            return
