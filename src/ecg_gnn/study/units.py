"""Single trainings (a variant on a split), one after another or several at a time."""

import math
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import active_children
from threading import current_thread, main_thread
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.checks import InputError
from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import GraphDataset
from ecg_gnn.embed import Embedder, EmbeddingCache
from ecg_gnn.evolve import graph_statistics
from ecg_gnn.pipeline import Workspace, classify, evolve
from ecg_gnn.study.records import Record, RunFolder
from ecg_gnn.study.statistics import Statistics, plain
from ecg_gnn.study.variants import Variant
from ecg_gnn.train.loop import Progress

OnProgress = Callable[[str, str], Progress | None]
Unit = tuple[Variant, int]


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
    on_progress: OnProgress | None = field(default=None, repr=False)

    def stored(self, unit: Unit) -> Record | None:
        """The record of a unit that was trained earlier."""
        variant, index = unit
        if self.folder is None:
            return None
        return self.folder.load(variant.file_name(index))

    def __call__(self, unit: Unit) -> Record:
        """Train one unit and keep its record."""
        variant, index = unit
        name = variant.file_name(index)
        record = self._train(variant, index, name)
        if self.folder is not None:
            self.folder.store(name, record)
        return record

    def _train(self, variant: Variant, index: int, name: str) -> Record:
        split, device = self.dataset.split(index), self.config.device
        workspace = self.workspace(f"{variant.name} · split {index}")
        on_gpu = device.startswith("cuda")
        if on_gpu:
            torch.cuda.reset_peak_memory_stats(device)
        evolved = [
            evolve(part, self.dataset, split, self.config, workspace)
            for part in variant.embeddings
        ]
        checkpoint = self.folder.checkpoint(name) if self.folder is not None else None
        _, result = classify(
            self.dataset, split, evolved, self.config, workspace, checkpoint=checkpoint
        )
        peak = torch.cuda.max_memory_allocated(device) if on_gpu else None
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
            evolved_statistics=[self._statistics(edges) for edges in evolved],
            losses=_finite(result.losses),
            val_scores=_finite(result.val_scores),
            test_scores=_finite(known(result.test_scores)),
            provenance={**self.made_with, "threads": torch.get_num_threads()},
        )

    def workspace(self, title: str) -> Workspace:
        """What the pipeline is given, its progress shown under a title."""
        own = Workspace(cache=self.cache, embedders=self.embedders)
        if (on_progress := self.on_progress) is None:
            return own
        return replace(own, progress=lambda work: on_progress(title, work))

    def _statistics(self, edges: Tensor) -> Statistics:
        return plain(graph_statistics(edges, self.dataset.y, directed=True))


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


def run_units(
    runner: UnitRunner, units: Sequence[Unit], jobs: int
) -> Iterator[tuple[Unit, Record]]:
    """Train units and yield each one's record as it is finished.

    With several jobs each is a process of its own with a share of this one's threads
    (a sum may round differently with another number of them, so records say it); a
    killed run loses no finished unit either way.
    """
    if jobs == 1:
        for unit in units:
            yield unit, runner(unit)
        return
    _embed_shared(runner, units)
    threads = max(1, torch.get_num_threads() // jobs)
    silent = replace(runner, on_progress=None)
    others = set(active_children())
    with ProcessPoolExecutor(
        max_workers=jobs,
        mp_context=torch.multiprocessing.get_context("spawn"),
        initializer=torch.set_num_threads,
        initargs=(threads,),
    ) as pool:
        with _sigint_ignored():
            waiting = {pool.submit(silent, unit): unit for unit in units}
        try:
            for future in as_completed(waiting):
                yield waiting[future], future.result()
        except BrokenProcessPool:
            raise MemoryError(
                "a training process was killed, most often for its memory: fewer jobs"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(active_children()) - others:
                child.terminate()
            raise


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Start processes that leave Ctrl-C to us: they inherit what is ignored now."""
    if current_thread() is not main_thread():  # only that one may set handlers
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
