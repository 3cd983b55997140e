"""What is learned, how, and what came of it.

Training labels may be input, as in UniMP (Shi et al., 2021): one column per class
beside the features. In every step a random share of the training nodes gives its label
and only the others are learned; in evaluation every training node gives its label. No
other node ever does. So no node's own label is input where its prediction counts:
neither in the loss, nor in a score.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import engine, keep_mask
from ecg_gnn.kernels.engine import Movable
from ecg_gnn.nn.network import GraphInput
from ecg_gnn.system.checks import check_in_range


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How long and how the training loop trains."""

    steps: int = 1000
    """Full-batch steps, or batches."""
    lr: float = 3e-5  # learning rate of AdamW, constant
    weight_decay: float = 0.0  # AdamW's weight decay
    precision: str = "fp32"
    """Arithmetic of the matrix products: fp32, tf32 (GPU only) or bf16."""
    checkpoint_seconds: float = 60.0
    """Seconds between checkpoints, where a path for them is given."""

    def __post_init__(self) -> None:
        check_in_range("steps", self.steps, 1, None)
        check_in_range("lr", self.lr, 0, None)
        check_in_range("weight_decay", self.weight_decay, 0, None)


@dataclass(frozen=True, kw_only=True)
class LabelInput:
    """Training labels beside the features, of a share of nodes in every step."""

    rate: float  # share of training nodes whose label is input in a step
    num_classes: int  # columns for labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Movable):
    """What is learned: inputs, labels, which nodes are for what, and the metric.

    Where labels are input, the network reads a column per class more than ``x`` has.
    """

    x: Tensor
    y: Tensor
    graphs: Sequence[GraphInput]
    train_index: Tensor
    val_index: Tensor
    test_index: Tensor | None  # None: test labels are hidden
    metric: str
    class_weights: Tensor | None = None  # how much a node of each class counts, [C]
    labels: LabelInput | None = None

    def to(self, device: torch.device | str) -> "Task":
        graphs = [graph.to(device) for graph in self.graphs]
        return replace(super().to(device), graphs=graphs)


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


class StepInput(NamedTuple):
    """What a network reads in a training step, and what it learns."""

    x: Tensor  # features, and labels where they are input, [N, F] or [N, F + C]
    learned: Tensor | None
    """How much each training node counts, 0 or 1; None: all of them, ``[n]``"""


def training_input(task: Task) -> StepInput:
    """Draw whose labels are input; on the device, with the shapes of every step."""
    if task.labels is None:
        return StepInput(task.x, None)
    hidden = keep_mask(task.train_index.numel(), task.labels.rate, task.x.device)
    learned = hidden.to(task.x.dtype)
    return StepInput(_with_labels(task, 1 - learned), learned)


def evaluation_input(task: Task) -> Tensor:
    """All training labels beside the features, if labels are input at all."""
    if task.labels is None:
        return task.x
    return _with_labels(task, torch.ones_like(task.train_index, dtype=task.x.dtype))


def features_alone(task: Task) -> Tensor:
    """The input of that width with no label in it."""
    if task.labels is None:
        return task.x
    return F.pad(task.x, (0, task.labels.num_classes))


def _with_labels(task: Task, given: Tensor) -> Tensor:
    """Features, and the labels of the training nodes times ``given`` [n]."""
    assert task.labels is not None
    classes = torch.arange(task.labels.num_classes, device=task.x.device)
    # Not `one_hot`, which asks the device for the highest class.
    labels = (task.y[task.train_index, None] == classes).to(task.x.dtype)
    columns = task.x.new_zeros(task.x.size(0), classes.numel())
    columns = columns.index_copy(0, task.train_index, labels * given[:, None])
    return torch.cat([task.x, columns], dim=1)


def supervised_loss(
    logits: Tensor,
    y: Tensor,
    class_weights: Tensor | None = None,
    learned: Tensor | None = None,
) -> Tensor:
    """Cross-entropy; binary cross-entropy where there is one logit.

    With class weights ``[C]`` it is the weighted mean. ``learned`` ``[n]``, 0 or 1,
    says which nodes count; where none does the loss is zero.
    """
    binary = logits.size(1) == 1
    if learned is None and not binary:
        return F.cross_entropy(logits, y, class_weights)
    one, target = logits[:, 0], y.to(logits.dtype)
    if learned is None:
        weight = None if class_weights is None else class_weights[y]
        weight = None if weight is None else weight / weight.mean()
        return F.binary_cross_entropy_with_logits(one, target, weight)
    if binary:
        losses = F.binary_cross_entropy_with_logits(one, target, reduction="none")
    else:
        losses = F.cross_entropy(logits, y, reduction="none")
    weight = learned.to(losses.dtype)
    if class_weights is not None:
        weight = weight * class_weights[y]
    return (losses * weight).sum() / weight.sum().clamp_min(1e-9)


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """Share of nodes whose highest logit is their class; one logit is cut at zero.

    NaN where a logit is: a diverged network has no score, and is never the best one.
    """
    predicted = logits[:, 0] > 0 if logits.size(1) == 1 else logits.argmax(dim=1)
    return _nan_if_any(logits, (predicted == y).double().mean())


def roc_auc(logits: Tensor, y: Tensor) -> Tensor:
    """Area under the ROC curve of two classes; tied scores count half.

    It is the Mann-Whitney statistic: the mean rank of the positives, where tied scores
    share the mean of their ranks. NaN where one class is absent or a score is NaN. Of
    two logits the difference is the score.
    """
    score = logits[:, -1] if logits.size(1) == 1 else logits[:, 1] - logits[:, 0]
    if engine.gpu_usable_on(score.device):
        functions = engine.gpu_kernels()
        if score.numel() <= functions.MOST_SCORES:
            area: Tensor = functions.roc_auc(score, y)
            return area
    ordered = score.sort().values
    below = torch.searchsorted(ordered, score.contiguous())
    up_to = torch.searchsorted(ordered, score.contiguous(), right=True)
    rank = (below + up_to + 1).double() / 2
    positive = y.double()
    num_positive = positive.sum()
    num_negative = y.numel() - num_positive
    excess = (rank * positive).sum() - num_positive * (num_positive + 1) / 2
    return _nan_if_any(score, excess / (num_positive * num_negative))


def _nan_if_any(values: Tensor, score: Tensor) -> Tensor:
    return torch.where(values.isnan().any(), torch.nan, score)


# Logits and classes to a score, by the names of ecg_gnn.system.checks.
METRICS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": accuracy,
    "roc_auc": roc_auc,
}


def score_probabilities(metric: str, probabilities: Tensor, y: Tensor) -> float:
    """A metric of probabilities ``[n, C]`` instead of logits."""
    logits = probabilities.double().log()
    if logits.size(1) == 2:  # above zero from one half on
        logits = logits[:, 1:] + math.log(2)
    return float(METRICS[metric](logits, y))
