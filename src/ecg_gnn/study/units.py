"""Training units (a variant on a split), one after another or in parallel."""

import gc
import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.identity import Variant
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import Embedder, EmbeddingCache
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import Classification, classify, embed_as_input, evolve
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.scale import SAMPLER_NAME
from ecg_gnn.study.records import Record, measure
from ecg_gnn.study.workers import LostWorkerError, WorkerPool
from ecg_gnn.system.checks import not_finite
from ecg_gnn.train import Progress, TrainResult

OnProgress = Callable[[str, str], Progress | None]
Unit = tuple[Variant, int]  # one training: a variant on a split
EndedUnits = Generator[tuple[Unit, Record | Exception], None, None]


@dataclass(frozen=True, kw_only=True)
class UnitRunner:
    """Trains units with one configuration; it can be sent to another process."""

    dataset: GraphDataset
    config: RunConfig
    run_id: str
    made_with: dict[str, Any]
    checkpoints: str | None = None  # how paths of unfinished trainings begin
    cache: EmbeddingCache | None = None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    loader_workers: int = 0
    on_progress: OnProgress | None = field(default=None, repr=False)

    def __call__(self, unit: Unit) -> Record:
        """Train one unit."""
        return self.together([unit])[0]

    def together(self, units: Sequence[Unit]) -> list[Record]:
        """Train several splits of one variant at the same time."""
        (variant, first), device = units[0], self.config.device
        on_gpu = device.startswith("cuda")
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        shown = f"split {first}" if len(units) == 1 else f"{len(units)} splits"
        workspace = self.workspace(f"{variant.name} · {shown}")
        trainings = []
        for _, index in units:
            split = self.dataset.split(index)
            evolved = self.graphs(variant, index, workspace)
            file = f"{self.checkpoints}{variant.file_name(index)}.safetensors"
            path = None if self.checkpoints is None else Path(file)
            data = self.dataset, split, self.config, workspace
            own = embed_as_input(variant.inputs, *data)
            trainings.append(Classification(split, evolved, path, vectors=own))
        trained = classify(self.dataset, trainings, self.config, workspace)
        made_with: dict[str, Any] = {"threads": torch.get_num_threads()}
        made_with |= {"trained_together": len(units)}
        if self.config.train.batch_size:
            made_with |= {"sampler": SAMPLER_NAME}
        peak = torch.cuda.max_memory_reserved(device) / 2**20 if on_gpu else None
        measured = {"peak_memory_mb": peak, "provenance": self.made_with | made_with}
        pairs = zip(units, trainings, trained, strict=True)
        return [
            self._record(unit, training.evolved, result, **measured)
            for unit, training, (_, result) in pairs
        ]

    def graphs(
        self, variant: Variant, index: int, workspace: Workspace
    ) -> list[EvolvedGraph]:
        """The evolved graphs of a unit."""
        data = self.dataset, self.dataset.split(index), self.config, workspace
        return [evolve(part, *data) for part in variant.graphs]

    def _record(
        self, unit: Unit, graphs: Sequence[Any], result: TrainResult, **measured: Any
    ) -> Record:
        variant, index = unit
        if result.test is None or not math.isfinite(result.test):
            said = f"the test score at the best step is {result.test}"
            raise not_finite(said, float(self.dataset.x.abs().max()))
        return Record(
            id=self.run_id,
            variant=variant.name,
            embedding=variant.embedding,
            model=self.config.model.name,
            split=index,
            seed=self.config.seed,
            best_step=result.best_step,
            val=result.val,
            test=result.test,
            seconds=result.seconds,
            evolved_statistics=[
                measure(self.dataset, EvolvedGraph.of(graph)) for graph in graphs
            ],
            losses=_finite(result.losses),
            val_scores=_finite(result.val_scores),
            test_scores=_finite(known(result.test_scores)),
            **measured,
        )

    def workspace(self, title: str) -> Workspace:
        """What the pipeline needs, its progress shown under a title."""
        on_progress = self.on_progress
        return Workspace(
            cache=self.cache,
            embedders=self.embedders,
            loader_workers=self.loader_workers,
            progress=lambda work: on_progress and on_progress(title, work),
        )


def _finite(values: Sequence[float]) -> list[float | None]:
    """JSON has no NaN or infinity: steps after a divergence are null."""
    return [value if math.isfinite(value) else None for value in values]


def most_together(config: RunConfig) -> int:
    """How many splits to train at once: one keeps a CPU busy, but not a GPU."""
    # The size of mini-batches is the user's choice, so they train alone.
    alone = config.train.batch_size or not config.device.startswith("cuda")
    return 1 if alone else 10


def batched(items: Iterable[Any], most: int) -> list[tuple[Any, ...]]:
    """Tuples of at most ``most`` items, in order (in ``itertools`` from 3.12 on)."""
    whole = tuple(items)
    return [whole[start : start + most] for start in range(0, len(whole), most)]


def run_units(
    runner: UnitRunner, units: Sequence[Unit], pool: WorkerPool
) -> EndedUnits:
    """Train units and yield each one's record, or what it failed with.

    What fails together (memory may be enough for each unit but not for all), or is lost
    with its process, is tried again alone. Each of several jobs is a process with its
    share of the threads (their number may change how sums are rounded, so records say
    it).
    """
    if pool.jobs == 1:
        for _, same in groupby(units, key=lambda unit: unit[0]):
            for batch in batched(same, most_together(runner.config)):
                yield from _train_here(runner, batch)
        return
    left = list(units)
    silent = replace(runner, on_progress=None)
    try:
        for unit, ended in pool.each(silent, units):
            left.remove(unit)
            yield unit, ended
    except LostWorkerError:
        for unit in left:
            try:
                yield from pool.each(silent, [unit])
            except LostWorkerError as error:
                yield unit, error


def _train_here(runner: UnitRunner, units: Sequence[Unit]) -> EndedUnits:
    """All at once; one by one if that fails, so that only the failing ones are lost."""
    if len(units) > 1:
        with suppress(Exception):
            yield from list(zip(units, runner.together(units), strict=True))
            return
        gc.collect()  # not before the error is gone: it keeps the units' memory alive
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    for unit in units:
        try:
            ended: Record | Exception = runner(unit)
        except Exception as error:
            ended = error
        yield unit, ended
