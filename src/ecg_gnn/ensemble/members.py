"""The result of a candidate: one model per fold, which predict together."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.ensemble.folds import Fold, OutOfFold
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Numbers, Target


@dataclass(frozen=True, eq=False)
class Member(ABC):
    """Fitted models of some folds; their predictions are averaged.

    A subclass is stored by its plain fields and its tensors, see ``state``.
    """

    kind: ClassVar[str]
    of_folds: ClassVar[tuple[str, ...]] = ()
    """Fields that have something for every fold: tuples, or tensors ``[folds, ...]``"""

    width: int
    """Columns of a prediction."""

    @abstractmethod
    def predict(self, inputs: GraphInputs, target: Target, known: Bools) -> Floats:
        """Predictions of every node, ``[N, width]``; ``known`` labels may be read."""

    def predict_rows(
        self, inputs: GraphInputs, target: Target, known: Bools, rows: Numbers
    ) -> Floats:
        """Predictions of some nodes, ``[rows, width]``."""
        return self.predict(inputs, target, known)[rows]

    @abstractmethod
    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values for JSON, and tensors."""

    @classmethod
    @abstractmethod
    def from_state(
        cls, width: int, plain: dict[str, Any], tensors: dict[str, Tensor]
    ) -> "Member":
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


Fitted = tuple[Member, OutOfFold]
"""A member and what its models say of the nodes that they were not trained on."""


def out_of_fold(
    num_nodes: int, width: int, folds: dict[int, Fold], parts: list[Floats]
) -> OutOfFold:
    """Collect predictions of held-out nodes, given fold by fold."""
    predicted = np.zeros((num_nodes, width), dtype=np.float32)
    for fold, rows in zip(folds.values(), parts, strict=True):
        predicted[fold.held_out] = rows
    return OutOfFold(predicted, tuple(folds))


def text_to_tensor(text: str) -> Tensor:
    """A text as bytes, for a file of tensors."""
    return torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())


def tensor_to_text(tensor: Tensor) -> str:
    """What ``text_to_tensor`` was given."""
    return tensor.numpy().tobytes().decode()
