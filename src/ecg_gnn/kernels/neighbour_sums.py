"""Sums over each node's edges, and dot products along edges.

The first three have fixed weights: GCN's normalised sum, SAGE's mean, the plain sum.
The other two are each other's gradient, so attention needs nothing else:

* ``weighted_sum``: ``out[u, :, h] = sum_e w[e, h] * x[source(e), :, h]``
* ``edge_dot``: ``s[e, h] = <a[target(e), :, h], b[source(e), :, h]>``
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import compiled, engine
from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.edge_order import EdgeWeight, Order
from ecg_gnn.kernels.engine import Grads, Kept, differentiable, linear_map
from ecg_gnn.system.checks import InputError

# Values that one piece of edges may gather: on a CPU what a cache holds, on a GPU what
# fills it; far below [E, d] either way once a graph is large.
_GATHER_BUDGET = {"cpu": 1 << 22, "cuda": 1 << 27}


def bag_sum(order: Order, weight: Tensor | None, rows: Tensor) -> Tensor:
    """Weighted sum of ``rows`` over each group of ``order``, without gathering them.

    ``embedding_bag`` was faster on CPUs than ``torch.sparse.mm``, and takes every type.
    """
    options: dict[str, Any] = {"mode": "sum", "include_last_offset": True}
    if weight is not None:
        options["per_sample_weights"] = weight.to(rows.dtype)
    return F.embedding_bag(order.other, rows, order.offsets, **options)


def weighted_sum(adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
    """Sum neighbours' rows ``[N, C, H]`` with weights ``[E, H]`` in target order."""
    weighs, reads = weight.requires_grad, x.requires_grad

    def there(weight: Tensor, x: Tensor) -> Kept:
        return _sum_to_targets(adjacency, weight, x), (weight, x if weighs else None)

    def back(grad: Tensor, weight: Tensor, x: Tensor) -> Grads:
        return (
            _edge_dot(adjacency, grad, x) if weighs else None,
            _sum_to_sources(adjacency, weight, grad) if reads else None,
        )

    return differentiable(there, back, weight, x)


def edge_dot(adjacency: Adjacency, a: Tensor, b: Tensor) -> Tensor:
    """``[E, H]``: products of the target's row of ``a`` and the source's of ``b``."""

    def there(a: Tensor, b: Tensor) -> Kept:
        return _edge_dot(adjacency, a, b), (a, b)

    def back(grad: Tensor, a: Tensor, b: Tensor) -> Grads:
        grad = grad.to(a.dtype)
        from_a = _sum_to_sources(adjacency, grad, a)
        return _sum_to_targets(adjacency, grad, b), from_a

    return differentiable(there, back, a, b)


def _sum_to_targets(adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
    return _sum_per_head(adjacency.by_target, weight, x)


def _sum_to_sources(adjacency: Adjacency, weight: Tensor, x: Tensor) -> Tensor:
    return _sum_per_head(adjacency.by_source, weight[adjacency.by_source_order], x)


def _sum_per_head(order: Order, weight: Tensor, x: Tensor) -> Tensor:
    # One copy that puts heads first is faster than one for every head.
    pairs = zip(weight.t().contiguous(), x.permute(2, 0, 1).contiguous(), strict=True)
    sums = torch.stack([bag_sum(order, *pair) for pair in pairs])
    return sums.permute(1, 2, 0).contiguous()


def _edge_dot(adjacency: Adjacency, a: Tensor, b: Tensor) -> Tensor:
    if compiled.usable(a, a.size(2)) and a.dtype == b.dtype:
        return compiled.edge_dot(adjacency, a, b)
    piece = max(1, _GATHER_BUDGET[a.device.type] // (a.size(1) * a.size(2)))
    ends = (adjacency.target.split(piece), adjacency.source.split(piece))
    return torch.cat([(a[u] * b[v]).sum(1) for u, v in zip(*ends, strict=True)])


def normalized_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v / sqrt(d_in(u) d_out(v))``; a node without edges gets zero."""
    return _fixed_sum(adjacency, x, "symmetric_weight", "in_scale", "out_scale")


def hop_sums(adjacency: Adjacency, x: Tensor, hops: int) -> list[Tensor]:
    """``x``, ``Â x``, ..., ``Â^K x``, where ``Â x`` is the normalised sum."""
    sums = [x]
    for _ in range(hops):
        sums.append(normalized_sum(adjacency, sums[-1]))
    return sums


def neighbour_mean(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``mean_v x_v`` over the incoming edges; a node without edges gets zero."""
    return _fixed_sum(adjacency, x, "mean_weight", "mean_scale", None)


def neighbour_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v`` over the incoming edges."""
    return _fixed_sum(adjacency, x, "unit_weight", None, None)


def _fixed_sum(
    adjacency: Adjacency, x: Tensor, weight: str, *scales: str | None
) -> Tensor:
    """By one of the adjacency's weights, or its factors of targets and sources."""
    if x.dim() != 2 or x.size(0) != adjacency.num_nodes:  # kernels take it on trust
        raise InputError(
            f"'x' must have shape [{adjacency.num_nodes}, d], a row for each node "
            f"(got {list(x.shape)})"
        )
    adjacency = adjacency.like(x)
    if engine.gpu_usable(x) and adjacency.edge_weight is None:
        row, other = (name and getattr(adjacency, name) for name in scales)
        gpu = engine.gpu_kernels()
        return linear_map(
            x,
            lambda rows: gpu.scaled_sum(gpu.by_target(adjacency), rows, row, other),
            lambda rows: gpu.scaled_sum(gpu.by_source(adjacency), rows, other, row),
        )
    given: EdgeWeight = getattr(adjacency, weight)
    return linear_map(
        x,
        lambda rows: bag_sum(adjacency.by_target, given.by_target, rows),
        lambda rows: bag_sum(adjacency.by_source, given.by_source, rows),
    )
