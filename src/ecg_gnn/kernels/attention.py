"""Attention over neighbours: scores, softmax per target, weighted sum; and gates.

A gate is a weight per edge that is no softmax. Only ``[E, H]`` is held for it, never
``[E, d]``; gradients are segment sums and dot products along edges, so that one seed
gives the same numbers every time.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import compiled, engine
from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.engine import Grads, Kept, differentiable, linear_map
from ecg_gnn.kernels.neighbour_sums import edge_dot, weighted_sum


def additive_attention(
    adjacency: Adjacency, scores: Tensor, values: Tensor, *, negative_slope: float = 0.2
) -> Tensor:
    """GAT: weights ``softmax_v leaky_relu(scores[v, 0] + scores[u, 1])``.

    Scores are of every node as a source and as a target, ``[N, 2, H]``; values are
    ``[N, C, H]``, like the result: a head is every H-th channel.
    """
    heads, slope = values.size(-1), float(negative_slope)
    # Compiled kernels take it on trust.
    assert scores.shape == (adjacency.num_nodes, 2, heads)
    assert len(scores) == len(values)
    assert scores.dtype == values.dtype
    assert scores.device == values.device == adjacency.device
    if (fast := _fast(adjacency, values)) is not None:
        passes = fast.additive_forward, fast.additive_backward
        return _fused(*passes, (adjacency, slope), scores, values)
    sums = F.leaky_relu(edge_scores(adjacency, scores), slope)
    return _attend(adjacency, sums, values)


def dot_product_attention(adjacency: Adjacency, packed: Tensor) -> Tensor:
    """Graph transformer: weights ``softmax_v <query_u, key_v> / sqrt(C)``.

    Packed are the query, read at targets, key and value, at sources: ``[N, 3, C, H]``.
    """
    channels = packed.size(2)
    assert packed.shape[:2] == (adjacency.num_nodes, 3)
    assert packed.device == adjacency.device
    if (fast := _fast(adjacency, packed[:, 0])) is not None:
        return _fused(fast.dot_forward, fast.dot_backward, (adjacency,), packed)
    query, key, values = packed.unbind(1)
    scores = edge_dot(adjacency, query, key) / math.sqrt(channels)
    return _attend(adjacency, scores, values)


def _fast(adjacency: Adjacency, values: Tensor) -> Any:
    """The module with kernels for such values; None: plain torch computes."""
    heads, plain = values.size(-1), adjacency.edge_weight is None
    if plain and engine.gpu_usable(values, heads):
        return engine.gpu_kernels()
    return compiled if plain and compiled.usable(values, heads) else None


def _fused(
    forward: Callable[..., tuple[Tensor, Tensor]],
    backward: Callable[..., Grads],
    given: tuple[Any, ...],
    *inputs: Tensor,
) -> Tensor:
    """By kernels, of which the first also gives every row's log-sum-exp."""

    def there(*inputs: Tensor) -> Kept:
        inputs = tuple(each.contiguous() for each in inputs)
        out, lse = forward(*given, *inputs)
        return out, (*inputs, out, lse)

    def back(grad: Tensor, *kept: Tensor) -> Grads:
        return backward(*given, grad.contiguous(), *kept)

    return differentiable(there, back, *inputs)


def _attend(adjacency: Adjacency, scores: Tensor, values: Tensor) -> Tensor:
    """The values' sum by a softmax of scores ``[E, H]``, times what edges weigh."""
    if adjacency.edge_weight is not None:
        precise = torch.promote_types(scores.dtype, torch.float32)
        weight = adjacency.edge_weight.to(precise).log()
        scores = scores + weight[:, None].to(scores.dtype)
    return weighted_sum(adjacency, edge_softmax(adjacency, scores), values)


def _segment_sum(offsets: Tensor, rows: Tensor) -> Tensor:
    return torch.segment_reduce(rows, "sum", offsets=offsets, axis=0)


def edge_scores(adjacency: Adjacency, scores: Tensor) -> Tensor:
    """``scores[v, 0] + scores[u, 1]`` of edges v -> u: ``[N, 2, H]`` to ``[E, H]``."""

    # Plain indexing would scatter in the backward pass: slow on CPUs, and in an order
    # that changes from run to run on GPUs.
    def to_sources(grad: Tensor) -> Tensor:
        ordered = grad[adjacency.by_source_order]
        return _segment_sum(adjacency.by_source.offsets, ordered)

    def to_targets(grad: Tensor) -> Tensor:
        return _segment_sum(adjacency.by_target.offsets, grad.contiguous())

    source, target = scores.unbind(1)
    of_source = linear_map(source, lambda each: each[adjacency.source], to_sources)
    return of_source + linear_map(
        target, lambda each: each[adjacency.target], to_targets
    )


def edge_softmax(adjacency: Adjacency, scores: Tensor) -> Tensor:
    """Scores ``[E, H]`` in target order to shares of each target's kept edges."""
    offsets, target = adjacency.by_target.offsets, adjacency.target

    def there(scores: Tensor) -> Kept:
        # Softmax in float32 also under bf16: sums over thousands of neighbours.
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        if adjacency.kept is not None:
            scores = scores.masked_fill(~adjacency.kept[:, None], -torch.inf)
        highest = torch.segment_reduce(scores, "max", offsets=offsets, axis=0)
        highest = highest.masked_fill(highest.isinf(), 0)  # nothing kept: no weight
        weight = (scores - highest[target]).exp_()
        total = _segment_sum(offsets, weight)
        weight = weight / total.clamp_min(torch.finfo(weight.dtype).tiny)[target]
        return weight, (weight,)

    def back(grad: Tensor, weight: Tensor) -> Grads:
        weighted = weight * grad
        return (weighted - weight * _segment_sum(offsets, weighted)[target],)

    return differentiable(there, back, scores)


def gated_sum(adjacency: Adjacency, gate: Tensor, x: Tensor) -> Tensor:
    """``sum_v gate_uv x_v`` over the kept edges, with gates ``[E]`` in target order."""
    if adjacency.kept is not None:
        gate = gate * adjacency.kept
    if adjacency.edge_weight is not None:
        gate = gate * adjacency.edge_weight
    return weighted_sum(adjacency, gate[:, None].to(x.dtype), x[..., None])[..., 0]
