"""The two fixed aggregations: GCN's normalised sum and SAGE's mean."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ecg_gnn.kernels.adjacency import Adjacency, EdgeWeight
from ecg_gnn.kernels.products import bag_sum


def normalized_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v / sqrt(d_in(u) d_out(v))``; a node without edges gets zero."""
    return _fixed_sum(adjacency, adjacency.symmetric_weight, x)


def neighbour_mean(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``mean_v x_v`` over the incoming edges; a node without edges gets zero."""
    return _fixed_sum(adjacency, adjacency.mean_weight, x)


def _fixed_sum(adjacency: Adjacency, weight: EdgeWeight, x: Tensor) -> Tensor:
    total: Tensor = _FixedSum.apply(adjacency, weight, x)  # type: ignore[no-untyped-call]
    return total


class _FixedSum(torch.autograd.Function):
    """Neighbours' rows times constant weights; backward is the transposed graph."""

    @staticmethod
    def forward(
        ctx: Any, adjacency: Adjacency, weight: EdgeWeight, x: Tensor
    ) -> Tensor:
        ctx.adjacency, ctx.weight = adjacency, weight
        return bag_sum(adjacency.by_target, weight.by_target, x)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, bag_sum(ctx.adjacency.by_source, ctx.weight.by_source, grad)
