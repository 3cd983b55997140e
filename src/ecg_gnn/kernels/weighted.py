"""A graph whose edges weigh differently."""

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TypeGuard

import torch
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.edge_order import EdgeWeight, lexicographic_order
from ecg_gnn.system.checks import InputError


@dataclass(frozen=True, eq=False)
class Adjacency(Adjacency):
    """Edges with a weight above zero each; all at one are a plain graph.

    Degrees are sums of weights, so a mean is a weighted mean and GCN's weight is
    ``w_uv / sqrt(d_in(u) d_out(v))``. Attention multiplies ``exp(score)`` by the
    weight, which is adding its logarithm to the score.

    The fast kernels know factors of nodes only: such a graph is summed by plain torch
    on every engine.

    Attributes:
        edge_weight: In target order. ``[E]``
    """

    edge_weight: Tensor = field(kw_only=True)

    @classmethod
    def from_weighted_edges(
        cls, edge_index: Tensor, edge_weight: Tensor, num_nodes: int
    ) -> "Adjacency":
        """Sort weighted edges both ways.

        Args:
            edge_index: The edges, row 0 source, row 1 target. ``[2, E]``
            edge_weight: What each weighs, above zero. ``[E]``
            num_nodes: Number of nodes, isolated ones included.
        """
        plain = Adjacency.from_edge_index(edge_index, num_nodes)
        if edge_weight.shape != (plain.num_edges,) or not (edge_weight > 0).all():
            raise InputError(
                f"'edge_weight' must be {plain.num_edges} numbers above zero, one per "
                f"edge (got {list(edge_weight.shape)}, lowest "
                f"{edge_weight.min() if edge_weight.numel() else 'none'})"
            )
        source, target = edge_index.long()
        order = lexicographic_order(source, target, num_nodes)
        weight = edge_weight.float()
        shared = {each.name: getattr(plain, each.name) for each in fields(plain)}
        return cls(**shared, edge_weight=weight if order is None else weight[order])

    @cached_property
    def _kept_weight(self) -> EdgeWeight:
        return super()._weight(self.edge_weight)

    @cached_property
    def in_degree(self) -> Tensor:
        """Weights of the kept edges arriving at each node, ``[N]``."""
        return _group_sums(self._kept_weight.by_target, self.by_target.offsets)

    @cached_property
    def out_degree(self) -> Tensor:
        """Weights of the kept edges leaving each node, ``[N]``."""
        return _group_sums(self._kept_weight.by_source, self.by_source.offsets)

    @cached_property
    def in_scale(self) -> Tensor:
        """``1 / sqrt(in_degree)``; one without edges, ``[N]``."""
        return _or_one(self.in_degree).rsqrt()

    @cached_property
    def out_scale(self) -> Tensor:
        """``1 / sqrt(out_degree)``; one without edges, ``[N]``."""
        return _or_one(self.out_degree).rsqrt()

    @cached_property
    def mean_scale(self) -> Tensor:
        """``1 / in_degree``; one without edges, ``[N]``."""
        return 1.0 / _or_one(self.in_degree)

    def _weight(self, weight: Tensor) -> EdgeWeight:
        return super()._weight(weight * self.edge_weight)

    def to(self, device: torch.device | str) -> "Adjacency":
        """The same graph on another device."""
        moved = super().to(device)
        assert isinstance(moved, Adjacency)
        return replace(moved, edge_weight=self.edge_weight.to(device))


def is_weighted(adjacency: Adjacency) -> TypeGuard[Adjacency]:
    """Whether edges weigh differently."""
    return isinstance(adjacency, Adjacency)


def with_log_weight(adjacency: Adjacency, scores: Tensor) -> Tensor:
    """Scores ``[E, H]`` before a softmax, shifted by what their edges weigh."""
    if not is_weighted(adjacency):
        return scores
    return scores + adjacency.edge_weight.log()[:, None].to(scores.dtype)


def _group_sums(values: Tensor, offsets: Tensor) -> Tensor:
    return torch.segment_reduce(values, "sum", offsets=offsets)


def _or_one(degree: Tensor) -> Tensor:
    return degree.masked_fill(degree == 0, 1)
