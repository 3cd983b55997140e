"""What is learned, how, and what came of it.

Training labels may be input, as in UniMP (Shi et al., 2021): one column per class
beside the features. In every step a random share of the training nodes gives its label
and only the others are learned; in evaluation every training node gives its label. No
other node ever does. So no node's own label is input where its prediction counts:
neither in the loss, nor in a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import keep_mask
from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import check_in_range

_Item = TypeVar("_Item", bound=Any)


def moved(item: _Item, device: torch.device) -> _Item:
    """A dataclass with its tensors, and whatever else can move, on another device."""
    values = {each.name: getattr(item, each.name) for each in fields(item)}
    there = {
        name: each.to(device) for name, each in values.items() if hasattr(each, "to")
    }
    return replace(item, **there)


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How long and how the training loop trains."""

    steps: int = 1000
    """Full-batch steps, or batches; ``EvalSchedule`` says which are evaluated."""
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

    def __post_init__(self) -> None:
        check_in_range("label_input", self.rate, 0, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
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

    def to(self, device: torch.device) -> "Task":
        """The same task on another device."""
        graphs = [graph.to(device) for graph in self.graphs]
        return replace(moved(self, device), graphs=graphs)


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
