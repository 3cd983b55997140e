"""Matrix products as the modules need them: several inputs, dropout right after."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ecg_gnn.kernels import gpu
from ecg_gnn.kernels.dropout import bias_dropout, dropout


def joint_linear(parts: Sequence[Tensor], linear: nn.Linear) -> Tensor:
    """``linear(cat(parts))`` without the concatenation.

    Args:
        parts: Inputs of equal width d; each meets its own columns of the weight.
            ``[N, d]`` each
        linear: From all of them together.
    """
    return product(parts, linear.weight, linear.bias)


def linear_dropout(
    parts: Sequence[Tensor], linear: nn.Linear, rate: float, *, gelu: bool = False
) -> Tensor:
    """``dropout(joint_linear(parts))``, and perhaps a GELU after it.

    On a GPU the bias is added in the pass that drops: there its gradient, the sum of
    every column, costs nothing either.
    """
    if gpu.usable(parts[0]) and (rate or gelu):
        weighted = product(parts, linear.weight, None)
        return bias_dropout(weighted, linear.bias, rate, gelu=gelu)
    dropped = dropout(joint_linear(parts, linear), rate)
    return F.gelu(dropped) if gelu else dropped


def product(parts: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> Tensor:
    """``cat(parts) @ weight.T + bias``, in autocast's type where that is on."""
    if len(parts) == 1 and not gpu.usable(parts[0]):
        return F.linear(parts[0], weight, bias)
    device = parts[0].device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        weight = weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
        parts = [part.to(dtype) for part in parts]
    out: Tensor = _Product.apply(weight, bias, *parts)  # type: ignore[no-untyped-call]
    return out


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, weight: Tensor, bias: Tensor | None, *parts: Tensor
    ) -> Tensor:
        ctx.save_for_backward(weight, *parts)
        # Backward passes run in threads of their own, which know of no engine.
        ctx.fast = gpu.usable(parts[0])
        columns = weight.split(parts[0].size(1), dim=1)
        out = F.linear(parts[0], columns[0], bias)
        for part, column in zip(parts[1:], columns[1:], strict=True):
            out.addmm_(part, column.t())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        weight, *parts = ctx.saved_tensors
        part_width = parts[0].size(1)
        columns = weight.split(part_width, dim=1)
        grad_weight = torch.empty_like(weight)
        for part, place in zip(parts, grad_weight.split(part_width, 1), strict=True):
            torch.mm(grad.t(), part, out=place)
        grad_bias = None
        if ctx.needs_input_grad[1]:
            grad_bias = gpu.kernels().column_sum(grad) if ctx.fast else grad.sum(0)
        given = [
            grad @ column if needed else None
            for column, needed in zip(columns, ctx.needs_input_grad[2:], strict=True)
        ]
        return grad_weight, grad_bias, *given
