"""A graph sorted once by target and by source, with its degrees and weights."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.checks import InputError, check_in_range
from ecg_gnn.kernels import gpu
from ecg_gnn.kernels.randomness import keep_mask

_DEGREE_LIMITS = (256, 32)


class Bucket(NamedTuple):
    """Nodes of similar degree: so many from a place in ``heavy_first`` on."""

    first: int
    nodes: int
    highest: int
    """No degree among them is higher."""


@dataclass(frozen=True, eq=False)
class Order:
    """Edges grouped by one end point: a CSR (by target) or CSC (by source) pattern.

    Attributes:
        offsets: Where each node's group begins; the last entry is E. ``[N + 1]``
        other: The opposite end point of every edge, in group order. ``[E]``
    """

    offsets: Tensor
    other: Tensor
    # What only some kernels ask for, made once: 32-bit copies.
    _compact: dict[str, Tensor] = field(default_factory=dict, repr=False)

    def compact(self, name: str, values: Tensor) -> Tensor:
        """A 32-bit copy of an index array, made once and kept under its name."""
        if name not in self._compact:
            if values.numel() >= 2**31:
                raise InputError(
                    "'engine' must be 'reference' for a graph of 2^31 edges or more "
                    f"(got {values.numel()})"
                )
            self._compact[name] = values.int()
        return self._compact[name]

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

    def counts(self, kept: Tensor | None) -> Tensor:
        """How many (kept) edges each node's group has, ``[N]``."""
        if kept is None:
            return self.offsets.diff()
        # Sums of integers are exact, so a running total cannot lose anything.
        total = torch.nn.functional.pad(kept.long().cumsum(0), (1, 0))
        return total[self.offsets].diff()


@dataclass(frozen=True, eq=False)
class EdgeWeight:
    """A constant per edge, in both orders: the second for the backward pass.

    Attributes:
        by_target: In target order. ``[E]``
        order: Maps target order to source order. ``[E]``
    """

    by_target: Tensor
    order: Tensor

    @cached_property
    def by_source(self) -> Tensor:
        """In source order, gathered once and not in every step, ``[E]``."""
        return self.by_target[self.order]


@dataclass(frozen=True, eq=False)
class Adjacency:
    """Edges ``source -> target`` over ``num_nodes`` nodes, ready for aggregation.

    Everything with one entry per edge is in *target order*: sorted by target, then by
    source. ``by_source_order`` maps it to the order of the transposed graph, which the
    backward passes walk.

    Attributes:
        kept: Edges that survived DropEdge, in target order; None keeps all. ``[E]``
    """

    num_nodes: int
    target: Tensor
    by_target: Order
    by_source: Order
    by_source_order: Tensor
    kept: Tensor | None = None
    # Shared by the copies that DropEdge makes: the sorted orders are theirs too.
    _head_orders: dict[int, tuple[Order, Order]] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def from_edge_index(
        cls, edge_index: Tensor, num_nodes: int, *, add_self_loops: bool = False
    ) -> "Adjacency":
        """Sort a ``[2, E]`` edge index (row 0 source, row 1 target) both ways.

        Args:
            edge_index: The edges; repeated ones count repeatedly.
            num_nodes: Number of nodes, isolated ones included.
            add_self_loops: Put a self-loop on every node that has none.

        Raises:
            InputError: For edges of another shape or type, or beyond the nodes.
        """
        source, target = _checked(edge_index, num_nodes)
        if add_self_loops:
            nodes = torch.arange(num_nodes, device=source.device)
            without = torch.ones(num_nodes, dtype=torch.bool, device=source.device)
            without[source[source == target]] = False
            source = torch.cat([source, nodes[without]])
            target = torch.cat([target, nodes[without]])
        order = torch.argsort(target * num_nodes + source, stable=True)
        source, target = source[order], target[order]
        by_source_order = torch.argsort(source, stable=True)
        return cls(
            num_nodes=num_nodes,
            target=target,
            by_target=Order(_offsets(target, num_nodes), source),
            by_source=Order(_offsets(source, num_nodes), target[by_source_order]),
            by_source_order=by_source_order,
        )

    @property
    def source(self) -> Tensor:
        """The source of every edge, in target order, ``[E]``."""
        return self.by_target.other

    @property
    def num_edges(self) -> int:
        """Number of edges before DropEdge."""
        return self.target.numel()

    @property
    def device(self) -> torch.device:
        """Where the graph lies."""
        return self.target.device

    def edge_index(self) -> Tensor:
        """The edges as PyG writes them, without those that DropEdge took."""
        edges = torch.stack([self.source, self.target])
        return edges if self.kept is None else edges[:, self.kept]

    def at_targets(self, rows: Tensor) -> Tensor:
        """Of ``[N, d]`` those of nodes with messages: of a whole graph, all rows."""
        return rows

    def drop_edges(self, rate: float) -> "Adjacency":
        """A copy in which every edge is dropped with probability ``rate``.

        Arrays keep their shapes, dropped edges only weigh nothing: no host
        synchronisation, and the sorted orders are shared with the original.
        """
        kept = keep_mask(self.num_edges, rate, self.device)
        return replace(self, kept=kept)

    @cached_property
    def in_degree(self) -> Tensor:
        """Kept edges arriving at each node, ``[N]``."""
        if self.kept is not None and gpu.usable_on(self.device):
            functions = gpu.kernels()
            counted: Tensor = functions.kept_degree(functions.by_target(self))
            return counted
        return self.by_target.counts(self.kept)

    @cached_property
    def out_degree(self) -> Tensor:
        """Kept edges leaving each node, ``[N]``."""
        if self.kept is not None and gpu.usable_on(self.device):
            functions = gpu.kernels()
            counted: Tensor = functions.kept_degree(functions.by_source(self))
            return counted
        kept = None if self.kept is None else self.kept[self.by_source_order]
        return self.by_source.counts(kept)

    @cached_property
    def in_scale(self) -> Tensor:
        """``1 / sqrt(in_degree)``; degrees count as at least one, ``[N]``."""
        return self.in_degree.clamp_min(1).rsqrt()

    @cached_property
    def out_scale(self) -> Tensor:
        """``1 / sqrt(out_degree)``; degrees count as at least one, ``[N]``."""
        return self.out_degree.clamp_min(1).rsqrt()

    @cached_property
    def mean_scale(self) -> Tensor:
        """``1 / in_degree``; degrees count as at least one, ``[N]``."""
        return 1.0 / self.in_degree.clamp_min(1)

    @cached_property
    def unit_scale(self) -> Tensor:
        """One for every node, ``[N]``."""
        return torch.ones_like(self.mean_scale)

    @cached_property
    def unit_weight(self) -> EdgeWeight:
        """One for every edge, 0 if dropped."""
        return self._weight(self.unit_scale[self.target])

    @cached_property
    def symmetric_weight(self) -> EdgeWeight:
        """``1 / sqrt(in_degree(target) * out_degree(source))``, 0 if dropped."""
        return self._weight(self.in_scale[self.target] * self.out_scale[self.source])

    @cached_property
    def mean_weight(self) -> EdgeWeight:
        """``1 / in_degree(target)``, 0 if dropped."""
        return self._weight(self.mean_scale[self.target])

    def _weight(self, weight: Tensor) -> EdgeWeight:
        kept = weight if self.kept is None else weight * self.kept
        return EdgeWeight(kept, self.by_source_order)

    def per_head(self, num_heads: int) -> tuple[Order, Order]:
        """Both orders repeated for ``num_heads`` stacked copies of the nodes."""
        if num_heads == 1:
            return self.by_target, self.by_source
        if num_heads not in self._head_orders:
            self._head_orders[num_heads] = (
                _repeat(self.by_target, num_heads),
                _repeat(self.by_source, num_heads),
            )
        return self._head_orders[num_heads]

    def to(self, device: torch.device | str) -> "Adjacency":
        """The same graph on another device."""
        return replace(
            self,
            target=self.target.to(device),
            by_target=_move(self.by_target, device),
            by_source=_move(self.by_source, device),
            by_source_order=self.by_source_order.to(device),
            kept=None if self.kept is None else self.kept.to(device),
            _head_orders={},
        )


def _checked(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Edges as int64 within the nodes: compiled kernels read memory by them."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(
            f"'edge_index' must have shape [2, E] (got {list(edge_index.shape)})"
        )
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise InputError(f"'edge_index' must hold integers (got {edge_index.dtype})")
    if edge_index.numel():
        low, high = edge_index.aminmax()
        check_in_range("edge_index", int(low), 0, num_nodes - 1)
        check_in_range("edge_index", int(high), 0, num_nodes - 1)
    return edge_index.long()


def _offsets(sorted_ids: Tensor, num_nodes: int) -> Tensor:
    counts = torch.bincount(sorted_ids, minlength=num_nodes)
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def _repeat(order: Order, num_heads: int) -> Order:
    num_nodes, num_edges = order.offsets.numel() - 1, order.other.numel()
    head = torch.arange(num_heads, device=order.other.device)[:, None]
    offsets = (order.offsets[:-1] + head * num_edges).flatten()
    end = torch.full_like(offsets[:1], num_heads * num_edges)
    return Order(
        offsets=torch.cat([offsets, end]),
        other=(order.other + head * num_nodes).flatten(),
    )


def _move(order: Order, device: torch.device | str) -> Order:
    return Order(order.offsets.to(device), order.other.to(device))
