"""The result of a search: members, their weights, and how sure they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ecg_gnn.ensemble.certainty import Conformity, Scaling, scaled
from ecg_gnn.ensemble.inputs import Bools, Floats, GraphInputs, Target
from ecg_gnn.ensemble.members import Member
from ecg_gnn.reading import first_line
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.machine import out_of_memory, threads_for, using_threads


@dataclass(frozen=True, eq=False)
class Share:
    """A member, its name and its weight; and what makes its probabilities honest."""

    name: str
    weight: float
    member: Member
    scaling: Scaling | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble:
    """A weighted mean of members, on the graph that they were fitted on."""

    x: Tensor  # features of the stored nodes
    edge_index: Tensor  # edges among them
    reading: GraphInputs  # how features are read
    target: Target  # what is predicted; labels that are not known are never read
    known: Bools  # whose labels may be read
    shares: tuple[Share, ...]  # the members, heaviest first
    scaling: Scaling  # makes calibrated probabilities
    conformity: Conformity  # how wrong predictions of held-out nodes were
    centre: tuple[float, float] = (0.0, 1.0)
    """The mean and the scale of numbers, which members see standardised."""

    # Such a model may hold evolved graphs inside its members, but has none of its own.
    evolved: None = None
    z: None = None

    @property
    def num_classes(self) -> int:
        """How many classes there are; 0 where numbers are predicted."""
        return self.target.num_classes

    def probabilities(
        self, new_x: Tensor | None = None, new_edges: Tensor | None = None
    ) -> NDArray[np.float64]:
        """Calibrated probabilities ``[N + M, C]``, or predicted numbers ``[N + M, 1]``.

        Args:
            new_x: Features of nodes to add, ``[M, F]``.
            new_edges: Edges to add, new nodes numbered after the stored ones.
        """
        inputs, target, known = self._joined(new_x, new_edges)
        total = np.zeros((inputs.num_nodes, self.target.width))
        # What is no number is told at the end, once.
        with using_threads(threads_for(inputs.size)), np.errstate(all="ignore"):
            for share in self.shares:
                with _fitting(share.name):
                    said = share.member.predict(inputs, target, known)
                    total += share.weight * scaled(said, share.scaling)
        return finite_rows("predictions", self.finished(total))

    def finished(self, predicted: NDArray[Any]) -> NDArray[np.float64]:
        """Members' weighted mean, calibrated or on the scale of the labels."""
        if self.target.is_number:
            mean, scale = self.centre
            return np.asarray(mean + scale * predicted)
        return self.scaling.probabilities(predicted)

    def _joined(
        self, new_x: Tensor | None, new_edges: Tensor | None
    ) -> tuple[GraphInputs, Target, Bools]:
        x, edges = self.x, self.edge_index
        if new_x is not None:
            x = torch.cat([x, new_x.to(x)])
        if new_edges is not None:
            edges = torch.cat([edges, new_edges], dim=1)
        inputs = self.reading.of_graph(as_rows(x), edges)
        added = len(x) - len(self.known)
        values = np.concatenate([self.target.values, np.zeros(added)])
        target = Target(values.astype(self.target.values.dtype), self.num_classes)
        known = np.concatenate([self.known, np.zeros(added, dtype=bool)])
        return inputs, target, known


@contextmanager
def _fitting(name: str) -> Iterator[None]:
    """Turn what a member of an edited file raises into one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if out_of_memory(error):
            raise
        raise InputError(
            f"the model's member {name!r} must fit its graph (got "
            f"{type(error).__name__}: {first_line(error)})"
        ) from error


def finite_rows(name: str, rows: NDArray[Any]) -> NDArray[Any]:
    """The rows of nodes; refused if weights, finite themselves, overflow in use."""
    if bad := int((~np.isfinite(rows)).any(axis=1).sum()):
        raise InputError(
            f"the model's weights must give finite {name} (got NaN or infinity for "
            f"{bad} of {len(rows)} nodes)"
        )
    return rows


def as_rows(x: Tensor) -> Floats:
    """Features as an array."""
    return np.ascontiguousarray(x.numpy(), dtype=np.float32)


def hidden_target(
    values: NDArray[Any], num_classes: int, known: Bools
) -> tuple[Target, tuple[float, float]]:
    """A target in which only known labels are left, and the centre of its numbers."""
    if num_classes:
        return Target(np.where(known, values, 0).astype(np.int64), num_classes), (0, 1)
    mean, scale = float(values[known].mean()), float(values[known].std()) or 1.0
    standard = np.where(known, (values - mean) / scale, 0.0)
    return Target(standard.astype(np.float32), 0), (mean, scale)
