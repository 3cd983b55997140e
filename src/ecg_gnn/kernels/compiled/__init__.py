"""The CPU twin of the reference: the kernels of ops.cpp as differentiable functions."""

import ctypes
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.compiled.building import library, run
from ecg_gnn.kernels.edge_order import Order
from ecg_gnn.kernels.engine import current_engine, linear_map
from ecg_gnn.kernels.hashing import Draw

_LANES = 16  # kLanes of ops.cpp: the number of heads must divide it


def usable(x: Tensor, num_heads: int = 1) -> bool:
    """Whether the C++ kernels compute on ``x`` with so many heads."""
    return (
        current_engine() == "fast"
        and _LANES % num_heads == 0
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.float64)
        and library() is not None
    )


def edge_dot(adjacency: Adjacency, a: Tensor, b: Tensor) -> Tensor:
    """See ``ecg_gnn.kernels.neighbour_sums.edge_dot``; not differentiable by itself."""
    _, channels, heads = a.shape
    out = a.new_empty(adjacency.num_edges, heads)
    given = (channels * heads, a.contiguous(), b.contiguous(), out)
    _run("edge_dots", out.dtype, heads, _by_target(adjacency), *given)
    return out


class _Pattern(ctypes.Structure):
    """``Pattern`` of ops.cpp."""

    _fields_ = (
        ("num_nodes", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("offsets", "other", "place", "kept")),
    )


def _by_target(adjacency: Adjacency) -> _Pattern:
    return _pattern(adjacency, adjacency.by_target, None)


def _by_source(adjacency: Adjacency) -> _Pattern:
    return _pattern(adjacency, adjacency.by_source, adjacency.by_source_order)


def _pattern(adjacency: Adjacency, order: Order, place: Tensor | None) -> _Pattern:
    arrays = (order.offsets, order.other, place, adjacency.kept)
    for each in arrays:
        assert each is None or each.is_contiguous(), "kernels read one after another"
    pointers = [None if each is None else each.data_ptr() for each in arrays]
    return _Pattern(adjacency.num_nodes, *pointers)


def _run(name: str, dtype: torch.dtype, heads: int, *arguments: Any) -> None:
    kind = ctypes.c_double if dtype == torch.float64 else ctypes.c_float
    given = (kind(each) if isinstance(each, float) else each for each in arguments)
    run(_kernel(name, dtype, heads), *given)


@cache
def _kernel(name: str, dtype: torch.dtype, heads: int) -> Any:
    loaded = library()
    assert loaded is not None, "call only what is usable"
    loaded.ecg_kernel.restype = ctypes.c_void_p
    address = loaded.ecg_kernel(name.encode(), heads, dtype == torch.float64)
    return ctypes.CFUNCTYPE(None)(address)


def additive_forward(
    adjacency: Adjacency, slope: float, scores: Tensor, values: Tensor
) -> tuple[Tensor, Tensor]:
    """Messages of GAT's attention, and each row's log-sum-exp."""
    source, target = (each.contiguous() for each in scores.unbind(1))
    out, lse = torch.empty_like(values), torch.empty_like(source)
    _, channels, heads = values.shape
    given = (channels * heads, source, target, values, slope, out, lse)
    _run("additive_forward", out.dtype, heads, _by_target(adjacency), *given)
    return out, lse


def additive_backward(
    adjacency: Adjacency, slope: float, grad: Tensor, *kept: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of scores and values."""
    scores, values, out, lse = kept
    source, target = (each.contiguous() for each in scores.unbind(1))
    nodes, channels, heads = values.shape
    width, kind = channels * heads, (grad.dtype, heads)
    delta, grad_target = torch.empty_like(lse), torch.empty_like(lse)
    grad_source, grad_values = torch.empty_like(lse), torch.empty_like(values)
    edges = values.new_empty(adjacency.num_edges, heads)
    _run("row_dots", *kind, nodes, width, grad, out, delta)
    given = (width, source, target, values, slope, grad, lse, delta)
    made = (grad_source, grad_values, edges)
    _run("additive_backward", *kind, _by_source(adjacency), *given, *made)
    _run("sum_edges", *kind, _by_target(adjacency), edges, grad_target)
    return torch.stack([grad_source, grad_target], 1), grad_values


def dot_forward(adjacency: Adjacency, packed: Tensor) -> tuple[Tensor, Tensor]:
    """Messages of the transformer's attention, and each row's log-sum-exp."""
    nodes, _, channels, heads = packed.shape
    out = packed.new_empty(nodes, channels, heads)
    lse = packed.new_empty(nodes, heads)
    given = (*_sizes(packed), *_parts(packed), channels**-0.5, out, lse)
    _run("dot_forward", out.dtype, heads, _by_target(adjacency), *given)
    return out, lse


def dot_backward(
    adjacency: Adjacency, grad: Tensor, packed: Tensor, out: Tensor, lse: Tensor
) -> tuple[Tensor]:
    """The gradient of query, key and value."""
    nodes, _, channels, heads = packed.shape
    delta, grads = torch.empty_like(lse), torch.empty_like(packed)
    edges = packed.new_empty(adjacency.num_edges, heads)
    kind = grad.dtype, heads
    _run("row_dots", *kind, nodes, channels * heads, grad, out, delta)
    parts, sizes = _parts(packed), _sizes(packed)
    grad_query, *grad_others = _parts(grads)
    given = (*sizes, *parts, channels**-0.5, grad, lse, delta, *grad_others, edges)
    _run("dot_backward", *kind, _by_source(adjacency), *given)
    # The query's gradient is the sum of keys weighted by the scores' gradients.
    given = (*sizes, edges, parts[1], grad_query)
    _run("weighted_sum", *kind, _by_target(adjacency), *given)
    return (grads,)


def _sizes(packed: Tensor) -> tuple[int, int]:
    """The width of a row, and how far the rows of one part lie apart."""
    _, parts, channels, heads = packed.shape
    return channels * heads, parts * channels * heads


def _parts(packed: Tensor) -> list[ctypes.c_void_p]:
    """Where query, key and value of the first node begin."""
    return [ctypes.c_void_p(part.data_ptr()) for part in packed.unbind(1)]


def dropout(x: Tensor, draw: Draw) -> Tensor:
    """Dropout whose mask is drawn again for the gradient: cheaper than memory."""
    drop = partial(_drop, draw=draw)
    return linear_map(x, drop, drop)


def _drop(x: Tensor, draw: Draw) -> Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    arguments = (x, out, draw.seed, ctypes.c_uint32(draw.threshold), draw.scale)
    _run("dropout", x.dtype, 1, x.numel(), *arguments)
    return out
