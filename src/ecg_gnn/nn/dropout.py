"""Dropout whose mask does not cost more than the layer it follows."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dropout(nn.Module):
    """Inverted dropout, drawn from torch's global generator.

    On CPU ``F.dropout`` of torch 2.13 spends 30 ms on 11,758 × 256 values, more than
    the matrix product before it. Here sixteen random bits per value decide instead:
    the rate is exact to 2^-16, and the scale uses the rate actually applied, so the
    expectation is exact. On a GPU the fused ``F.dropout`` is used.

    Args:
        rate: Probability of a value being set to zero, in training only.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop values; the identity in evaluation mode or at rate 0."""
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.rate)
        return x * _cpu_mask(x, self.rate)

    def extra_repr(self) -> str:
        """Show the rate."""
        return f"rate={self.rate}"


def _cpu_mask(x: Tensor, rate: float) -> Tensor:
    words = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    words.random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    threshold = round(rate * 2**16)  # of 2^16 equally likely values, this many drop
    if threshold == 2**16:  # all; the comparison below would overflow int16
        return torch.zeros_like(x)
    scale = 2**16 / (2**16 - threshold)
    return (bits >= threshold - 2**15).to(x.dtype).mul_(scale)
