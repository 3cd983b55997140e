"""Passes over dense rows: products of several inputs, dropout, layer norm.

Dropout is by a hash of each value's place. ``F.dropout`` of torch 2.13 costs more on a
CPU than the matrix product before it, and on a GPU it keeps a mask. A hash needs no
state: the fast kernels draw the mask twice, forward and backward, rather than keep it;
plain torch computes the same one.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import compiled, engine
from ecg_gnn.kernels.engine import Grads, Kept, differentiable
from ecg_gnn.kernels.hashing import Draw, fresh_seed, hashes


def joint_linear(parts: Sequence[Tensor], linear: nn.Linear) -> Tensor:
    """``linear(cat(parts))`` of parts of equal width, without the concatenation."""
    return product(parts, linear.weight, linear.bias)


def linear_dropout(
    parts: Sequence[Tensor], linear: nn.Linear, rate: float, *, gelu: bool = False
) -> Tensor:
    """``dropout(joint_linear(parts))``, perhaps a GELU; a GPU adds the bias with it."""
    fits = linear.weight.size(0) <= engine.MAX_CHANNELS
    if engine.gpu_usable(parts[0]) and fits and (rate or gelu):
        weighted = product(parts, linear.weight, None)
        draw = Draw.of(rate, fresh_seed(weighted.device)) if rate else None
        if rate and draw is None:
            return torch.zeros_like(weighted)
        made: Tensor = engine.gpu_kernels().bias_dropout(
            weighted, linear.bias, draw, gelu
        )
        return made
    dropped = dropout(joint_linear(parts, linear), rate)
    return F.gelu(dropped) if gelu else dropped


def product(parts: Sequence[Tensor], weight: Tensor, bias: Tensor | None) -> Tensor:
    """``cat(parts) @ weight.T + bias``, in autocast's type where that is on."""
    if len(parts) == 1 and not engine.gpu_usable(parts[0]):
        return F.linear(parts[0], weight, bias)
    device = parts[0].device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        weight = weight.to(dtype)
        bias = None if bias is None else bias.to(dtype)
        parts = [part.to(dtype) for part in parts]
    fast = engine.gpu_usable(parts[0])  # threads of backward passes know no engine
    width = parts[0].size(1)

    def there(weight: Tensor, bias: Tensor | None, *parts: Tensor) -> Kept:
        columns = weight.split(width, dim=1)
        out = F.linear(parts[0], columns[0], bias)
        for part, column in zip(parts[1:], columns[1:], strict=True):
            out.addmm_(part, column.t())
        return out, (weight, *parts)

    needed = [part.requires_grad for part in parts]

    def back(grad: Tensor, weight: Tensor, *parts: Tensor) -> Grads:
        grad_weight, grad_bias = torch.empty_like(weight), None
        for part, place in zip(parts, grad_weight.split(width, 1), strict=True):
            torch.mm(grad.t(), part, out=place)
        if bias is not None:
            grad_bias = engine.gpu_kernels().column_sum(grad) if fast else grad.sum(0)
        pairs = zip(weight.split(width, dim=1), needed, strict=True)
        return grad_weight, grad_bias, *(grad @ w if n else None for w, n in pairs)

    return differentiable(there, back, weight, bias, *parts)


def dropout(x: Tensor, rate: float) -> Tensor:
    """Drop values with probability ``rate``, exact to 2^-32, and scale up the rest."""
    if rate == 0:
        return x
    if (draw := Draw.of(rate, fresh_seed(x.device))) is None:
        return torch.zeros_like(x)
    if engine.gpu_usable(x) and x.dim() > 1 and x.numel():
        rows = x.reshape(-1, x.size(-1))
        out: Tensor = engine.gpu_kernels().bias_dropout(rows, None, draw, False)
        return out.view(x.shape)
    if compiled.usable(x):
        return compiled.dropout(x, draw)
    kept: Tensor = hashes(x.numel(), draw.seed).view(x.shape) >= draw.threshold
    return x * kept.to(x.dtype).mul_(draw.scale)


def add_norm(
    x: Tensor, update: Tensor | None, norm: nn.Module
) -> tuple[Tensor, Tensor]:
    """The stream ``x`` after an update, and its layer norm.

    The stream and the statistics keep their precision; under autocast the norm comes
    in the low one, as what reads it (products, gathers) works in that anyway.
    """
    assert isinstance(norm, nn.LayerNorm)
    device = x.device.type
    low = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if low else x.dtype
    if engine.gpu_usable(x):
        weights = (norm.weight, norm.bias, norm.eps)
        add = engine.gpu_kernels().add_norm
        both: tuple[Tensor, Tensor] = add(x, update, *weights, dtype)
        return both
    total = x if update is None else x + update
    normed = F.layer_norm(
        total, norm.normalized_shape, norm.weight, norm.bias, norm.eps
    )
    return total, normed.to(dtype)
