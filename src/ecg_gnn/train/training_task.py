"""What is learned, how, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ecg_gnn.nn.parallel import GraphInput
from ecg_gnn.system.checks import check_in_range


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """How long and how the training loop trains."""

    steps: int = 1000
    """Full-batch steps, or batches; ``EvalSchedule`` says which are evaluated."""
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


@dataclass(frozen=True, kw_only=True)
class LabelInput:
    """Training labels beside the features; see ``ecg_gnn.train.training_task``.

    Attributes:
        rate: Share of training nodes whose label is input in a step.
        num_classes: Columns for labels.
    """

    rate: float
    num_classes: int

    def __post_init__(self) -> None:
        check_in_range("label_input", self.rate, 0, 0.99)


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What is learned: inputs, labels, which nodes are for what, and the metric.

    Attributes:
        test_index: None where test labels are hidden (weak classifiers never see any).
        class_weights: How much a node of each class counts in the loss; None: all the
            same. ``[C]``
        labels: How training labels are input; None: they are not. The network then
            reads ``num_classes`` columns more than ``x`` has.
    """

    x: Tensor
    y: Tensor
    graphs: Sequence[GraphInput]
    train_index: Tensor
    val_index: Tensor
    test_index: Tensor | None
    metric: str
    class_weights: Tensor | None = None
    labels: LabelInput | None = None

    def to(self, device: torch.device) -> "Task":
        """The same task on another device."""
        test_index, weights = self.test_index, self.class_weights
        return Task(
            x=self.x.to(device),
            y=self.y.to(device),
            graphs=[graph.to(device) for graph in self.graphs],
            train_index=self.train_index.to(device),
            val_index=self.val_index.to(device),
            test_index=None if test_index is None else test_index.to(device),
            metric=self.metric,
            class_weights=None if weights is None else weights.to(device),
            labels=self.labels,
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
