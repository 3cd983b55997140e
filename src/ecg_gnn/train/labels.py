"""Masked label input: training labels are features, except where they are learned.

As in UniMP (Shi et al., 2021): one column per class beside the features, so that the
network's first linear map has weights for labels, too. In every step a random share of
the training nodes gives its label and only the others are learned; in evaluation every
training node gives its label. No other node ever does. So no node's own label is input
where its prediction counts: neither in the loss, nor in a score.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import keep_mask
from ecg_gnn.train.training_task import Task


class StepInput(NamedTuple):
    """What a network reads in a training step, and what it learns.

    Attributes:
        x: Features, and labels where they are input. ``[N, F]`` or ``[N, F + C]``
        learned: How much each training node counts, 0 or 1; None: all of them. ``[n]``
    """

    x: Tensor
    learned: Tensor | None


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


def learned_loss(
    logits: Tensor, y: Tensor, learned: Tensor, class_weights: Tensor | None
) -> Tensor:
    """``supervised_loss`` of the nodes that count; zero where none does.

    Args:
        logits: ``[n, C]``, or ``[n, 1]`` for two classes.
        y: Classes. ``[n]``
        learned: How much each node counts, 0 or 1. ``[n]``
        class_weights: How much a node of each class counts. ``[C]``
    """
    if logits.size(1) > 1:
        losses = F.cross_entropy(logits, y, reduction="none")
    else:
        target = y.to(logits.dtype)
        losses = F.binary_cross_entropy_with_logits(
            logits[:, 0], target, reduction="none"
        )
    weight = learned.to(losses.dtype)
    if class_weights is not None:
        weight = weight * class_weights[y]
    return (losses * weight).sum() / weight.sum().clamp_min(1e-9)


def _with_labels(task: Task, given: Tensor) -> Tensor:
    """Features, and the labels of the training nodes times ``given`` [n]."""
    assert task.labels is not None
    classes = torch.arange(task.labels.num_classes, device=task.x.device)
    # Not `one_hot`, which asks the device for the highest class.
    labels = (task.y[task.train_index, None] == classes).to(task.x.dtype)
    columns = task.x.new_zeros(task.x.size(0), classes.numel())
    columns = columns.index_copy(0, task.train_index, labels * given[:, None])
    return torch.cat([task.x, columns], dim=1)
