"""The benchmark's protocol: full-batch AdamW steps, each followed by an evaluation.

The reported test score is the one at the step of the best validation score. Nothing
inside a step waits for the device: losses and scores are written into buffers that are
read once at the end, and the best weights are kept by a selection on the device.

All randomness of step t comes from (seed, t), so that a run resumed from a checkpoint
draws what the uninterrupted one would have drawn.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ecg_gnn.checks import InputError, check_in_range
from ecg_gnn.nn.network import Network
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.seeds import derive_seed, seeded
from ecg_gnn.train.checkpoint import content_hash, load_checkpoint, save_checkpoint
from ecg_gnn.train.metrics import METRICS, supervised_loss
from ecg_gnn.train.precision import computing_in
from ecg_gnn.train.state import TrainState

Progress = Callable[[int, int, float], None]
"""Called about once a second with (steps done, steps in all, best validation score)."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How long and how to train."""

    steps: int = 1000
    """Full-batch steps, each followed by an evaluation."""
    lr: float = 3e-5
    """Learning rate of AdamW, constant."""
    weight_decay: float = 0.0
    """AdamW's weight decay."""
    precision: str = "fp32"
    """Arithmetic of the matrix products: fp32, tf32 (GPU only) or bf16."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints, where a path for them is given."""

    def __post_init__(self) -> None:
        check_in_range("steps", self.steps, 1, None)
        check_in_range("lr", self.lr, 0, None)
        check_in_range("weight_decay", self.weight_decay, 0, None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is learned: inputs, labels, which nodes are for what, and the metric.

    Attributes:
        test_index: None where test labels are hidden (weak classifiers never see any).
    """

    x: Tensor
    y: Tensor
    graphs: Sequence[GraphInput]
    train_index: Tensor
    val_index: Tensor
    test_index: Tensor | None
    metric: str

    def to(self, device: torch.device) -> "Task":
        """The same task on another device."""
        test_index = self.test_index
        return Task(
            x=self.x.to(device),
            y=self.y.to(device),
            graphs=[graph.to(device) for graph in self.graphs],
            train_index=self.train_index.to(device),
            val_index=self.val_index.to(device),
            test_index=None if test_index is None else test_index.to(device),
            metric=self.metric,
        )


@dataclass(frozen=True, kw_only=True)
class TrainResult:
    """Raw numbers of one training; ``best_step`` counts from one."""

    best_step: int
    val: float
    test: float | None
    losses: list[float]
    val_scores: list[float]
    test_scores: list[float] | None
    seconds: float


def train(
    network: Network,
    task: Task,
    config: TrainConfig,
    *,
    seed: int,
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> TrainResult:
    """Train in place; the network ends with the weights of the best validation step.

    Args:
        network: On the task's device.
        task: What to learn.
        config: How.
        seed: Of dropout and DropEdge; initialisation is the caller's.
        checkpoint: File to resume from, kept up to date and removed at the end.
        progress: Told about once a second.
    """
    device = task.x.device
    state = TrainState.start(network, config.lr, config.weight_decay, config.steps)
    fingerprint = ""
    if checkpoint is not None:
        fingerprint = _fingerprint(network, task, config, seed)
        load_checkpoint(checkpoint, state, fingerprint)
    last = last_report = last_save = time.perf_counter()
    with seeded(seed, "training"), computing_in(config.precision, device):
        while state.done < config.steps:
            run_step(network, task, state, derive_seed(seed, "step", state.done))
            now = time.perf_counter()
            state.seconds, last = state.seconds + now - last, now
            if progress is not None and now - last_report > 1:
                last_report = now
                progress(state.done, config.steps, float(state.best_val))
            if checkpoint is not None and now - last_save > config.checkpoint_seconds:
                save_checkpoint(checkpoint, state, fingerprint)
                last_save = now
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # steps may still be queued
        state.seconds += time.perf_counter() - last
    result = _result(state, task)
    state.restore_best(network)
    network.eval()
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return result


def run_step(network: Network, task: Task, state: TrainState, seed: int) -> None:
    """One training step and its evaluation; nothing waits for the device."""
    torch.manual_seed(seed)
    network.train()
    state.optimizer.zero_grad(set_to_none=True)
    logits = network(task.x, task.graphs)[task.train_index].float()
    loss = supervised_loss(logits, task.y[task.train_index])
    loss.backward()
    state.optimizer.step()
    state.record(network, loss.detach(), *evaluate(network, task))


@torch.no_grad()
def evaluate(network: Network, task: Task) -> tuple[Tensor, Tensor | None]:
    """Validation and test score, on the device; the test score only if there is one."""
    network.eval()
    logits = network(task.x, task.graphs).float()
    score = METRICS[task.metric]
    val = score(logits[task.val_index], task.y[task.val_index])
    if task.test_index is None:
        return val, None
    return val, score(logits[task.test_index], task.y[task.test_index])


def _result(state: TrainState, task: Task) -> TrainResult:
    losses = state.losses.tolist()
    best = int(state.best_step)
    if best == 0:
        raise InputError(
            "'lr' must be small enough for training to stay finite "
            f"(the validation score was never a number; last loss {losses[-1]})"
        )
    val, test = state.val_scores.tolist(), state.test_scores.tolist()
    hidden = task.test_index is None
    return TrainResult(
        best_step=best,
        val=val[best - 1],
        test=None if hidden else test[best - 1],
        losses=losses,
        val_scores=val,
        test_scores=None if hidden else test,
        seconds=state.seconds,
    )


def _fingerprint(network: Network, task: Task, config: TrainConfig, seed: int) -> str:
    """Everything that determines a training, the first weights included."""
    test = [] if task.test_index is None else [task.test_index]
    edges = [graph.adjacency.edge_index() for graph in task.graphs]
    content = content_hash(
        [
            *network.state_dict().values(),
            *(task.x, task.y, task.train_index, task.val_index, *test, *edges),
        ]
    )
    rates = [graph.drop_edge for graph in task.graphs]
    return f"{seed}/{config}/{task.metric}/{rates}/{content}"
