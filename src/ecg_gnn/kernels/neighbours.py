"""The fixed aggregations: GCN's normalised sum, SAGE's mean, and the plain sum."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ecg_gnn.kernels import gpu
from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.order import EdgeWeight
from ecg_gnn.kernels.products import bag_sum
from ecg_gnn.kernels.weighted import is_weighted
from ecg_gnn.system.checks import InputError


def normalized_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v / sqrt(d_in(u) d_out(v))``; a node without edges gets zero."""
    _check(adjacency, x)
    if _has_kernel(adjacency, x):
        return _scaled_sum(adjacency, adjacency.in_scale, adjacency.out_scale, x)
    return _fixed_sum(adjacency, adjacency.symmetric_weight, x)


def neighbour_mean(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``mean_v x_v`` over the incoming edges; a node without edges gets zero."""
    _check(adjacency, x)
    if _has_kernel(adjacency, x):
        return _scaled_sum(adjacency, adjacency.mean_scale, None, x)
    return _fixed_sum(adjacency, adjacency.mean_weight, x)


def neighbour_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v`` over the incoming edges."""
    _check(adjacency, x)
    if _has_kernel(adjacency, x):
        return _scaled_sum(adjacency, adjacency.unit_scale, None, x)
    return _fixed_sum(adjacency, adjacency.unit_weight, x)


def _has_kernel(adjacency: Adjacency, x: Tensor) -> bool:
    return gpu.usable(x) and not is_weighted(adjacency)


def _check(adjacency: Adjacency, x: Tensor) -> None:
    """A row per node: kernels take this on trust."""
    if x.dim() != 2 or x.size(0) != adjacency.num_nodes:
        raise InputError(
            f"'x' must have shape [{adjacency.num_nodes}, d], a row for each node "
            f"(got {list(x.shape)})"
        )


def _fixed_sum(adjacency: Adjacency, weight: EdgeWeight, x: Tensor) -> Tensor:
    total: Tensor = _FixedSum.apply(adjacency, weight, x)  # type: ignore[no-untyped-call]
    return total


def _scaled_sum(
    adjacency: Adjacency, at_target: Tensor, at_source: Tensor | None, x: Tensor
) -> Tensor:
    arguments = (adjacency, at_target, at_source, x)
    total: Tensor = _ScaledSum.apply(*arguments)  # type: ignore[no-untyped-call]
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


class _ScaledSum(torch.autograd.Function):
    """The same on a GPU, with weights that are products of the two nodes' factors."""

    @staticmethod
    def forward(
        ctx: Any,
        adjacency: Adjacency,
        at_target: Tensor,
        at_source: Tensor | None,
        x: Tensor,
    ) -> Tensor:
        ctx.adjacency, ctx.scales = adjacency, (at_source, at_target)
        functions = gpu.kernels()
        pattern = functions.by_target(adjacency)
        total: Tensor = functions.scaled_sum(pattern, x, at_target, at_source)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        functions = gpu.kernels()
        pattern = functions.by_source(ctx.adjacency)
        return None, None, None, functions.scaled_sum(pattern, grad, *ctx.scales)
