"""Edges grouped by one of their ends, and the stable sorts that group them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from ecg_gnn.kernels.engine import Movable
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.machine import cached_property

_DEGREE_LIMITS = (256, 32)


class Bucket(NamedTuple):
    """Nodes of similar degree: so many from a place in ``heavy_first`` on."""

    first: int
    nodes: int
    highest: int  # no degree among them is higher


@dataclass(frozen=True, eq=False)
class Order(Movable):
    """Edges grouped by one end point: a CSR (by target) or CSC (by source) pattern.

    What follows from that is made when it is first asked for. Drawing neighbours never
    asks: of a large graph this is most of the memory.
    """

    offsets: Tensor  # where each node's group begins; the last entry is E, [N + 1]
    other: Tensor  # the opposite end point of every edge, in group order, [E]

    @cached_property
    def own(self) -> Tensor:
        """The end point that every edge is grouped by, in group order, ``[E]``."""
        nodes = torch.arange(self.offsets.numel() - 1, device=self.offsets.device)
        size = self.other.numel()
        return nodes.repeat_interleave(self.offsets.diff(), output_size=size)

    @cached_property
    def turning(self) -> Tensor:
        """Maps this order to that by the other end points, ``[E]``."""
        return stable_argsort(self.other, self.offsets.numel() - 1)

    @cached_property
    def turned_offsets(self) -> Tensor:
        """Where each group begins by the other end points, ``[N + 1]``."""
        return offsets_of(self.other, self.offsets.numel() - 1)

    @cached_property
    def turned(self) -> "Order":
        """The edges grouped by their other end points."""
        return Order(self.turned_offsets, self.own[self.turning])

    @cached_property
    def compact(self) -> "Order":
        """The same in 32-bit numbers, as kernels for GPUs read them."""
        return Order(_compact(self.offsets), _compact(self.other))

    @cached_property
    def compact_turning(self) -> Tensor:
        """``turning`` in 32-bit numbers."""
        return _compact(self.turning)

    @cached_property
    def heavy_first(self) -> Tensor:
        """Nodes by falling number of edges, as 32-bit numbers, ``[N]``."""
        return self.offsets.diff().argsort(descending=True, stable=True).int()

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """``heavy_first`` cut where degrees pass certain limits; waits for a device."""
        degree = self.offsets.diff()
        limits = torch.tensor(_DEGREE_LIMITS, device=degree.device)
        above = (degree > limits[:, None]).sum(1).tolist()
        edges = [0, *above, degree.numel()]
        highest = [int(degree.max()) if degree.numel() else 0, *_DEGREE_LIMITS]
        pieces = zip(edges, edges[1:], highest, strict=False)
        return tuple(Bucket(a, b - a, most) for a, b, most in pieces if b > a)


@dataclass(frozen=True, eq=False)
class EdgeWeight:
    """A constant per edge, in both orders: the second for the backward pass."""

    by_target: Tensor  # in target order, [E]
    order: Tensor  # maps target order to source order, [E]

    @cached_property
    def by_source(self) -> Tensor:
        """In source order, gathered once and not in every step, ``[E]``."""
        return self.by_target[self.order]


def _compact(values: Tensor) -> Tensor:
    if values.numel() >= 2**31:
        raise InputError(
            "'engine' must be 'reference' for a graph of 2^31 edges or more "
            f"(got {values.numel()})"
        )
    return values.int()


def offsets_of(ids: Tensor, num_nodes: int) -> Tensor:
    """Where each node's group would begin if they were sorted, ``[N + 1]``."""
    counts = torch.bincount(ids, minlength=num_nodes)
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def stable_argsort(ids: Tensor, bound: int) -> Tensor:
    """As torch's stable ``argsort``, for whole numbers below ``bound``, ``[E]``."""
    if ids.device.type != "cpu" or not ids.numel():
        return torch.argsort(ids, stable=True)
    # A matrix whose row e has its one entry in column ids[e]: its columns, one after
    # another, are the sorted edges. Transposing it is a counting sort in C++.
    size = ids.numel()
    width = np.int32 if max(size, bound) < 2**31 else np.int64
    rows, columns = np.arange(size + 1, dtype=width), ids.numpy().astype(width)
    entry = np.zeros(size, dtype=np.bool_)
    parts = (entry, columns, rows)
    matrix = csr_array(parts, shape=(size, bound))  # type: ignore[type-var]
    return torch.from_numpy(matrix.tocsc().indices).long()


def lexicographic_order(source: Tensor, target: Tensor, bound: int) -> Tensor | None:
    """The order by target, then by source, ``[E]``; None if they are in it already."""
    if target.device.type != "cpu":
        return torch.argsort(target * bound + source, stable=True)
    stays = (target[1:] == target[:-1]) & (source[1:] >= source[:-1])
    if bool(((target[1:] > target[:-1]) | stays).all()):
        return None
    by_source = stable_argsort(source, bound)
    return by_source[stable_argsort(target[by_source], bound)]
