"""Dropout by a hash of each value's place.

``F.dropout`` of torch 2.13 costs more on a CPU than the matrix product before it, and
on a GPU it keeps a mask. A hash needs no state: the fast kernels draw the mask twice,
forward and backward, rather than keep it; plain torch computes the same one.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import gpu
from ecg_gnn.kernels.compiled import functions as compiled
from ecg_gnn.kernels.draw import Draw
from ecg_gnn.kernels.randomness import fresh_seed, hashes


def dropout(x: Tensor, rate: float) -> Tensor:
    """Set values to zero with probability ``rate`` and scale up the rest.

    The rate is exact to 2^-32, and the scale uses the rate actually applied.
    """
    if rate == 0:
        return x
    if (draw := Draw.of(rate, fresh_seed(x.device))) is None:
        return torch.zeros_like(x)
    if gpu.usable(x) and x.dim() > 1 and x.numel():
        rows = x.reshape(-1, x.size(-1))
        out: Tensor = gpu.kernels().bias_dropout(rows, None, draw, False)
        return out.view(x.shape)
    return compiled.dropout(x, draw) if compiled.usable(x) else x * _mask(x, draw)


def bias_dropout(x: Tensor, bias: Tensor, rate: float, *, gelu: bool) -> Tensor:
    """``dropout(x + bias)`` and perhaps a GELU after it: one pass on a GPU.

    Args:
        x: ``[N, d]``
        bias: ``[d]``
        rate: Share of values to drop.
        gelu: Whether a GELU follows.
    """
    if not gpu.usable(x):
        dropped = dropout(x + bias.to(x.dtype), rate)
        return F.gelu(dropped) if gelu else dropped
    draw = Draw.of(rate, fresh_seed(x.device)) if rate else None
    if draw is None and rate:
        return torch.zeros_like(x)
    out: Tensor = gpu.kernels().bias_dropout(x, bias, draw, gelu)
    return out


def _mask(x: Tensor, draw: Draw) -> Tensor:
    kept: Tensor = hashes(x.numel(), draw.seed).view(x.shape) >= draw.threshold
    return kept.to(x.dtype).mul_(draw.scale)
