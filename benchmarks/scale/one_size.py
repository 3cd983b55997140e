"""One size through all stages, by the package's own functions."""

import gc
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from ecg_gnn.config import (
    EmbedConfig,
    EvolveConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
)
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import Classification, embed
from ecg_gnn.pipeline.classification import make_training
from ecg_gnn.pipeline.method import evolve_embedding
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.scale import BatchTraining, LayerwiseInference
from ecg_gnn.scale.batches import NodeInputs
from ecg_gnn.train import METRICS, ROWS_AT_ONCE, Training, computing_in
from ecg_gnn.train.training import BATCH

sys.path.append(str(Path(__file__).resolve().parents[1]))
from ecg_bench.peak_memory import most_held_mb

FEATURES, EDGES_PER_NODE, CLASSES, HOMOPHILY, SIGNAL = 64, 10, 5, 0.2, 3.0
K = 10
HIDDEN, LAYERS, LR = 64, 2, 1e-2
WARM_UP_NODES = 2_000

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What is measured.

    Attributes:
        nodes: Nodes of the graph.
        device: ``cpu`` or ``cuda``.
        knn: How neighbours are found.
        batch_size: Training nodes of a batch; a GPU takes full-batch steps if they fit.
        fanout: Neighbours that a node draws in each of the two graphs.
        embed_width: Of the MLP and its embeddings.
        embed_epochs: For which the MLP is trained.
    """

    nodes: int
    device: str = "cpu"
    knn: str = "auto"
    batch_size: int = 8192
    fanout: int = 4
    embed_width: int = 16
    embed_epochs: int = 5


def run_config(settings: Settings) -> RunConfig:
    """The same run as settings of the command ``ecg-gnn run``."""
    nodes, num_train = settings.nodes, settings.nodes // 2
    batches = -(-num_train // settings.batch_size) if settings.batch_size else 1
    rows = num_train if 3 * num_train // 2 <= ROWS_AT_ONCE else BATCH
    fit = TrainConfig(steps=batches + 1, lr=LR)  # one more, which is not taken
    if settings.batch_size:
        fit = replace(
            fit,
            batch_size=settings.batch_size,
            fanout=(settings.fanout,),
            eval_every=batches + 1,
        )
    return RunConfig(
        dataset=f"csbm:nodes={nodes},classes={CLASSES},degree={2 * EDGES_PER_NODE},"
        f"homophily={HOMOPHILY},features={FEATURES},signal={SIGNAL},num_splits=1",
        splits=(0,),
        device=settings.device,
        embed=EmbedConfig(
            names=("mlp",),
            layers=1,
            hidden=settings.embed_width,
            steps=settings.embed_epochs * -(-num_train // rows),
            lr=LR,
        ),
        evolve=EvolveConfig(k=K, knn=settings.knn),
        model=ModelConfig(name="sage", layers=LAYERS, hidden=HIDDEN),
        train=fit,
    )


@dataclass
class Clock:
    """Seconds and peak memory of named stages."""

    device: torch.device
    stages: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def measure(self, name: str, work: Callable[[], Result]) -> Result:
        """Do the work and note what it took; on a GPU its memory, and the host's."""
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)

        def timed() -> tuple[Result, float, float]:
            started, busy = time.perf_counter(), time.process_time()
            result = work()
            if on_gpu:
                torch.cuda.synchronize(self.device)
            seconds = time.perf_counter() - started
            return result, seconds, time.process_time() - busy

        (result, seconds, busy), host = most_held_mb(timed)
        # Cores' seconds tell what a stage takes where others are busy on the machine.
        found = {"seconds": seconds, "cpu_s": busy, "peak_mb": host}
        if on_gpu:
            peak = torch.cuda.max_memory_allocated(self.device) / 2**20
            found |= {"peak_mb": peak, "host_mb": host}
        self.stages[name] = found
        print(f"    {name}: {seconds:.2f} s, {busy:.2f} s of cores", flush=True)
        return result


def measure_size(settings: Settings) -> dict[str, Any]:
    """Every stage once; on a GPU a small graph goes first, to compile what it needs."""
    device, started = torch.device(settings.device), time.perf_counter()
    warm_up = 0.0
    if device.type == "cuda":
        _through_all(replace(settings, nodes=WARM_UP_NODES), Clock(device))
        warm_up = time.perf_counter() - started
    clock = Clock(device)
    found = _through_all(settings, clock)
    return {
        **asdict(settings),
        **found,
        "embedding": f"MLP of width {settings.embed_width}, "
        f"{settings.embed_epochs} epochs",
        "model": f"ECG-SAGE of width {HIDDEN}, {LAYERS} layers",
        "warm_up_s": warm_up,
        "total_s": sum(stage["seconds"] or 0.0 for stage in clock.stages.values()),
        "stages": clock.stages,
    }


def _through_all(settings: Settings, clock: Clock) -> dict[str, Any]:
    unresolved = run_config(settings)
    dataset = clock.measure("generate", lambda: load_dataset(unresolved.dataset))
    config = resolve(unresolved, dataset)
    with computing_in(config.train.precision, torch.device(config.device)):
        evolved = _embed_and_evolve(dataset, config, clock)
        training = clock.measure("train", lambda: train_epoch(dataset, evolved, config))
        logits = clock.measure("infer", lambda: infer(training))
        val, test = clock.measure("metrics", lambda: scores(logits, dataset))
    return {
        "edges": dataset.num_edges,
        "evolved_edges": evolved.edge_index.size(1),
        "knn_recall": evolved.recall,
        "epoch": _describe_epoch(training),
        "val": val,
        "test": test,
    }


def _embed_and_evolve(
    dataset: GraphDataset, config: RunConfig, clock: Clock
) -> EvolvedGraph:
    """Steps 1 and 2; the embedding is let go."""
    given = ("mlp", dataset, dataset.split(0), config)
    z = clock.measure("embed", lambda: embed(*given))
    return clock.measure("kNN", lambda: evolve_embedding(z, *given))


def train_epoch(
    dataset: GraphDataset, evolved: EvolvedGraph, config: RunConfig
) -> Training:
    """All training nodes once: batches, or on a GPU one full-batch step if it fits."""
    job = Classification(dataset.split(0), [evolved])
    if config.device == "cuda" and config.train.batch_size:
        full = replace(config, train=TrainConfig(steps=2, lr=LR, precision="tf32"))
        try:
            return _steps(make_training(dataset, job, full))
        except torch.OutOfMemoryError:
            pass  # not in here, where the error would keep the memory alive
        gc.collect()
        torch.cuda.empty_cache()
    return _steps(make_training(dataset, job, config))


def _steps(training: Training) -> Training:
    for _ in range(training.config.steps - 1):
        training.step()
    training.best_so_far()  # waits for the device
    return training


def infer(training: Training) -> Tensor:
    """Logits of all nodes, of the weights after the epoch."""
    training.network.eval()
    task = training.task
    if not isinstance(training, BatchTraining):
        with torch.no_grad():
            return training.network(task.x, task.graphs)
    nodes = torch.arange(task.x.size(0))
    inputs = NodeInputs(task)
    return LayerwiseInference(training.network, inputs, task.graphs, nodes).logits()


def scores(logits: Tensor, dataset: GraphDataset) -> tuple[float, float]:
    """The validation and the test score."""
    split, score = dataset.split(0), METRICS[dataset.metric]
    y, logits = dataset.y.to(logits.device), logits.float()
    masks = (mask.to(logits.device) for mask in (split.val_mask, split.test_mask))
    val, test = (score(logits[mask], y[mask]) for mask in masks)
    return float(val), float(test)


def _describe_epoch(training: Training) -> str:
    steps = training.config.steps - 1
    if isinstance(training, BatchTraining):
        return "1 batch" if steps == 1 else f"{steps} batches"
    return "1 full-batch step" if steps == 1 else f"{steps} full-batch steps"
