"""A graph sorted once by target and by source, with its degrees and weights."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import engine
from ecg_gnn.kernels.edge_order import (
    EdgeWeight,
    Order,
    lexicographic_order,
    offsets_of,
)
from ecg_gnn.kernels.engine import Movable
from ecg_gnn.kernels.hashing import keep_mask
from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.machine import cached_property


@dataclass(frozen=True, eq=False)
class Adjacency(Movable):
    """Edges ``source -> target`` over ``num_nodes`` nodes, ready for aggregation.

    Everything with one entry per edge is in *target order*: sorted by target, then by
    source. ``by_source_order`` maps it to the order of the transposed graph, which the
    backward passes walk.

    Where edges weigh differently, degrees are sums of weights: a mean is a weighted
    mean, GCN's weight is ``w_uv / sqrt(d_in(u) d_out(v))``, and attention multiplies
    ``exp(score)`` by the weight. The fast kernels know factors of nodes only: such a
    graph is summed by plain torch on every engine.

    Attributes:
        kept: Edges that survived DropEdge, in target order; None keeps all. ``[E]``
        edge_weight: Above zero, in target order; None: all weigh one. ``[E]``
        dtype: Of factors and weights; see ``like``
    """

    num_nodes: int
    by_target: Order
    kept: Tensor | None = None
    edge_weight: Tensor | None = None
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if self.device.type != "cpu":  # a recorded step must find all in its place
            _ = self.by_source

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int,
        *,
        add_self_loops: bool = False,
        edge_weight: Tensor | None = None,
        **more: Any,
    ) -> Self:
        """Sort a ``[2, E]`` edge index (row 0 source, row 1 target) both ways.

        Repeated edges count repeatedly. ``add_self_loops`` puts a self-loop on every
        node that has none. Edges with weights ``[E]``, which are above zero, get none.
        ``more`` is what a subclass adds.
        """
        check_edge_index(edge_index, num_nodes)  # compiled kernels read memory by it
        source, target = edge_index.long()
        if edge_weight is not None:
            assert not add_self_loops, "nobody says what they would weigh"
            _check_weights(edge_weight, source.numel())
            edge_weight = edge_weight.float()
        if add_self_loops:
            nodes = torch.arange(num_nodes, device=source.device)
            without = torch.ones(num_nodes, dtype=torch.bool, device=source.device)
            without[source[source == target]] = False
            source = torch.cat([source, nodes[without]])
            target = torch.cat([target, nodes[without]])
        order = lexicographic_order(source, target, num_nodes)
        if order is None:  # a copy all the same: the caller's tensor may change
            source = source.clone(memory_format=torch.contiguous_format)
        else:
            source, target = source[order], target[order]
            edge_weight = None if edge_weight is None else edge_weight[order]
        by_target = Order(offsets_of(target, num_nodes), source)
        return cls(num_nodes, by_target, edge_weight=edge_weight, **more)

    @property
    def target(self) -> Tensor:
        """The target of every edge, in target order, ``[E]``."""
        return self.by_target.own

    @property
    def by_source(self) -> Order:
        """The edges by source: what the backward passes walk."""
        return self.by_target.turned

    @property
    def by_source_order(self) -> Tensor:
        """Maps target order to source order, ``[E]``."""
        return self.by_target.turning

    @property
    def source(self) -> Tensor:
        """The source of every edge, in target order, ``[E]``."""
        return self.by_target.other

    @property
    def num_edges(self) -> int:
        """Number of edges before DropEdge."""
        return self.source.numel()

    @property
    def device(self) -> torch.device:
        return self.source.device

    def edge_index(self) -> Tensor:
        """The edges as PyG writes them, without those that DropEdge took."""
        edges = torch.stack([self.source, self.target])
        return edges if self.kept is None else edges[:, self.kept]

    def at_targets(self, rows: Tensor) -> Tensor:
        """Of ``[N, d]`` those of nodes with messages: of a whole graph, all rows."""
        return rows

    def drop_edges(self, rate: float) -> Self:
        """A copy in which a share ``rate`` of the edges, drawn anew, weighs nothing."""
        return replace(self, kept=keep_mask(self.num_edges, rate, self.device))

    def like(self, rows: Tensor) -> Self:
        """With factors and weights as precise as the rows that they will multiply."""
        return self._in_float64 if rows.dtype == torch.float64 else self

    @cached_property
    def _in_float64(self) -> Self:
        return replace(self, dtype=torch.float64)

    @cached_property
    def in_degree(self) -> Tensor:
        """Kept edges arriving at each node, or the sum of their weights, ``[N]``."""
        return self._degree("by_target", self.by_target.offsets)

    @cached_property
    def out_degree(self) -> Tensor:
        """Kept edges leaving each node, or the sum of their weights, ``[N]``."""
        # Without the order by source, which may not be there.
        return self._degree("by_source", self.by_target.turned_offsets)

    def _degree(self, by: str, offsets: Tensor) -> Tensor:
        if self.edge_weight is not None:
            weight: Tensor = getattr(self.unit_weight, by)
            return torch.segment_reduce(weight, "sum", offsets=offsets)
        if self.kept is None:
            return offsets.diff()
        if engine.gpu_usable_on(self.device):
            functions = engine.gpu_kernels()
            counted: Tensor = functions.kept_degree(getattr(functions, by)(self))
            return counted
        kept = self.kept if by == "by_target" else self.kept[self.by_source_order]
        # Sums of integers are exact, so a running total cannot lose anything.
        return F.pad(kept.long().cumsum(0), (1, 0))[offsets].diff()

    @cached_property
    def in_scale(self) -> Tensor:
        """``1 / sqrt(in_degree)``; one without edges, ``[N]``."""
        return self._or_one(self.in_degree).rsqrt()

    @cached_property
    def out_scale(self) -> Tensor:
        """``1 / sqrt(out_degree)``; one without edges, ``[N]``."""
        return self._or_one(self.out_degree).rsqrt()

    @cached_property
    def mean_scale(self) -> Tensor:
        """``1 / in_degree``; one without edges, ``[N]``."""
        return 1.0 / self._or_one(self.in_degree)

    def _or_one(self, degree: Tensor) -> Tensor:
        degree = degree.to(self.dtype)
        if self.edge_weight is None:
            return degree.clamp_min(1)
        return degree.masked_fill(degree == 0, 1)  # sums of weights may be below one

    @cached_property
    def unit_weight(self) -> EdgeWeight:
        """What every edge weighs, 0 if dropped."""
        one = torch.ones(self.num_edges, dtype=self.dtype, device=self.device)
        return self._weight(one)

    @cached_property
    def symmetric_weight(self) -> EdgeWeight:
        """``1 / sqrt(in_degree(target) * out_degree(source))``, 0 if dropped."""
        return self._weight(self.in_scale[self.target] * self.out_scale[self.source])

    @cached_property
    def mean_weight(self) -> EdgeWeight:
        """``1 / in_degree(target)``, 0 if dropped."""
        return self._weight(self.mean_scale[self.target])

    def _weight(self, weight: Tensor) -> EdgeWeight:
        if self.edge_weight is not None:
            weight = weight * self.edge_weight
        kept = weight if self.kept is None else weight * self.kept
        return EdgeWeight(kept, self.by_source_order)


@dataclass(frozen=True, eq=False)
class SampledAdjacency(Adjacency):
    """Some of a larger graph's edges, into the first ``num_targets`` of its nodes.

    The edges into a target are a uniform sample, without replacement, of those that
    it has in the whole graph. A mean over the sample estimates the mean over all of
    them, as it is. GCN's sum would shrink: here a sampled edge stands for
    ``d_in(u) / s(u)`` edges, where s(u) is how many were sampled, and weighs
    ``d_in(u) / s(u) / sqrt(d_in(u) d_out(v))`` with the whole graph's degrees. Its
    expectation is the whole graph's sum, and with all edges sampled it is that sum.
    """

    num_targets: int = field(kw_only=True)
    whole_in: Tensor = field(kw_only=True)  # in_degree in the whole graph, [N]
    whole_out: Tensor = field(kw_only=True)  # out_degree there, [N]
    drop_rate: float = field(default=0.0, kw_only=True)  # what DropEdge took

    def at_targets(self, rows: Tensor) -> Tensor:
        """The rows of the targets. ``[N, d]`` to ``[num_targets, d]``."""
        return rows if self.num_targets == self.num_nodes else rows[: self.num_targets]

    def drop_edges(self, rate: float) -> Self:
        """As ever; degrees of the whole graph shrink as they are expected to."""
        return replace(super().drop_edges(rate), drop_rate=rate)

    @cached_property
    def in_scale(self) -> Tensor:
        """``d/s`` times ``1 / sqrt(d)``, of the degree d that DropEdge left, ``[N]``.

        That degree is not known, but estimated from the share left of the sample.
        """
        whole = self if self.kept is None else replace(self, kept=None)
        kept, sampled = self.in_degree.to(self.dtype), whole.in_degree.to(self.dtype)
        return torch.where(kept > 0, self.whole_in / (sampled * kept), 1).sqrt()

    @cached_property
    def out_scale(self) -> Tensor:
        """``1 / sqrt(d)`` of the degree that DropEdge is expected to leave, ``[N]``.

        It is asked for at the source of an edge that is left, which counts for sure.
        """
        left = self.whole_out * (1 - self.drop_rate) + self.drop_rate
        return torch.where(self.whole_out > 0, left, 1).rsqrt()


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Refuse what is no pair of node numbers for each edge."""
    is_whole = not edge_index.is_floating_point() and edge_index.dtype != torch.bool
    if edge_index.dim() != 2 or edge_index.size(0) != 2 or not is_whole:
        got = f"{edge_index.dtype} {list(edge_index.shape)}"
        raise InputError(f"'edge_index' must be integer [2, E] (got {got})")
    for end in edge_index.aminmax() if edge_index.numel() else ():
        check_in_range("edge_index", int(end), 0, num_nodes - 1)


def _check_weights(edge_weight: Tensor, num_edges: int) -> None:
    if edge_weight.shape != (num_edges,) or not (edge_weight > 0).all():
        raise InputError(
            f"'edge_weight' must be {num_edges} numbers above zero, one per "
            f"edge (got {list(edge_weight.shape)}, lowest "
            f"{edge_weight.min() if edge_weight.numel() else 'none'})"
        )
