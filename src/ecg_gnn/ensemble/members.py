"""What a candidate is given, folds of the labelled nodes, and what it gives back."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.ensemble.inputs import ALL, Floats, GraphInputs, Numbers, Rows, Target
from ecg_gnn.system.checks import InputError

_MANY = 5_000
"""Labelled nodes from which on four fifths of them are enough to learn from."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Nodes that a model learns from, and nodes that judge it."""

    train: Numbers
    held_out: Numbers


@dataclass(frozen=True)
class Job:
    """One candidate on some folds."""

    inputs: GraphInputs
    target: Target
    folds: dict[int, Fold]
    metric: str
    deadline: float  # on the monotonic clock; training stops and keeps what it has
    stopped: Callable[[], bool] = bool  # the user has had enough
    device: str = "cpu"  # where networks are trained

    def out_of_time(self) -> bool:
        """Whether the deadline has passed, or the user has had enough."""
        return self.stopped() or time.monotonic() > self.deadline

    def out_of_fold(self, parts: Iterable[Floats]) -> Floats:
        """Collect predictions of held-out nodes, given by fold; others are zero."""
        size = self.inputs.num_nodes, self.target.width
        predicted = np.zeros(size, dtype=np.float32)
        for fold, rows in zip(self.folds.values(), parts, strict=True):
            predicted[fold.held_out] = rows
        return predicted

    def to_send(self) -> "Job":
        """The job as another machine needs it: with the time that is left."""
        return replace(self, deadline=self.deadline - time.monotonic(), stopped=bool)


def fold_count(labelled: int) -> int:
    """How many folds labelled nodes are dealt into.

    Where they are few, models of eight folds are better than those of five: each learns
    from 7/8 of the nodes instead of 4/5.
    """
    return max(2, min(8 if labelled < _MANY else 5, labelled // 4))


def thinned(rows: Numbers, most: int) -> Numbers:
    """Every second row, or third, and so on, so that about ``most`` are left."""
    return rows[:: 1 + len(rows) // most]


def make_folds(
    target: Target, labelled: Numbers, count: int, seed: int
) -> tuple[Fold, ...]:
    """Deal labelled nodes into folds, each class (or range of numbers) evenly."""
    if len(labelled) < 2 * count:
        raise InputError(
            f"at least {2 * count} nodes must have a label (got {len(labelled)})"
        )
    values = target.values[labelled]
    shuffled = np.random.default_rng(seed).permutation(len(labelled))
    # Sorted by label, then dealt like cards: every fold gets its share of each.
    order = shuffled[np.argsort(values[shuffled], kind="stable")]
    number = np.empty(len(labelled), dtype=np.int64)
    number[order] = np.arange(len(labelled)) % count
    return tuple(
        Fold(np.sort(labelled[number != fold]), np.sort(labelled[number == fold]))
        for fold in range(count)
    )


Plain = dict[str, Any]  # values for JSON
Tensors = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Member(ABC):
    """Fitted models of some folds; their predictions are averaged.

    A subclass is stored by its plain fields and its tensors, see ``state``.
    """

    kind: ClassVar[str]
    of_folds: ClassVar[tuple[str, ...]] = ()
    """Fields that have something for every fold: tuples, or tensors ``[folds, ...]``"""

    width: int  # columns of a prediction

    @abstractmethod
    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        """Predictions of nodes, ``[rows, width]``; known labels may be read."""

    @abstractmethod
    def state(self) -> tuple[Plain, Tensors]:
        """Plain values for JSON, and tensors."""

    @classmethod
    @abstractmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> "Member":
        """Rebuild what ``state`` described; whatever does not fit raises."""

    def joined(self, other: "Member") -> Self:
        """With the models of further folds."""
        assert type(other) is type(self)
        changed: dict[str, Any] = {}
        for name in self.of_folds:
            both = getattr(self, name), getattr(other, name)
            are_tensors = isinstance(both[0], Tensor)
            changed[name] = torch.cat(both) if are_tensors else sum(both, start=())
        return replace(self, **changed)


Fitted = tuple[Member, Floats]
"""A member, and what its models say of nodes that they were not trained on."""
