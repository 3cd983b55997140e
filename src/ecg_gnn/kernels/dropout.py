"""Dropout: torch's own on a GPU, a hash of each value's place on a CPU.

``F.dropout`` of torch 2.13 costs more on a CPU than the matrix product before it. A
hash needs no state, so the compiled kernel draws the mask twice, forward and backward,
rather than keep it; plain torch computes the same one.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels.compiled import functions as compiled

_BITS = 32
_MASK = 2**_BITS - 1


def dropout(x: Tensor, rate: float) -> Tensor:
    """Set values to zero with probability ``rate`` and scale up the rest.

    The seed comes from torch's global generator. The rate is exact to 2^-32, and the
    scale uses the rate actually applied.
    """
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    if (draw := _draw(rate)) is None:
        return torch.zeros_like(x)
    return compiled.dropout(x, draw) if compiled.usable(x) else x * _mask(x, draw)


def _draw(rate: float) -> compiled.Draw | None:
    """A fresh seed and the share to drop; None for all of it."""
    threshold = round(rate * 2**_BITS)  # of 2^32 equally likely values, this many drop
    if threshold == 2**_BITS:
        return None
    seed = torch.empty(1, dtype=torch.int64).random_(-(2**63), None)
    return compiled.Draw(seed, threshold, 2**_BITS / (2**_BITS - threshold))


def _mask(x: Tensor, draw: compiled.Draw) -> Tensor:
    kept: Tensor = _hash(x.numel(), draw.seed).view(x.shape) >= draw.threshold
    return kept.to(x.dtype).mul_(draw.scale)


def _hash(size: int, seed: Tensor) -> Tensor:
    """``mix(mix(place + low half of the seed) ^ high half)``, as in ops.cpp."""
    low, high = seed & _MASK, (seed >> _BITS) & _MASK
    place = torch.arange(size)
    return _mix(_mix((place + low) & _MASK) ^ high)


def _mix(x: Tensor) -> Tensor:
    """An integer hash of thirty-two bits; products wrap around above them."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & _MASK
    x = ((x ^ (x >> 15)) * 0x846CA68B) & _MASK
    return x ^ (x >> 16)
