"""Layer norm of a residual stream."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.kernels import gpu


def add_norm(
    x: Tensor, update: Tensor | None, norm: nn.Module
) -> tuple[Tensor, Tensor]:
    """The stream after an update, and its layer norm.

    The stream and the statistics keep their precision; under autocast the norm comes
    in the low one, as what reads it (products, gathers) works in that anyway.

    Args:
        x: The stream. ``[N, d]``
        update: What is added to it, if anything. ``[N, d]``
        norm: The ``LayerNorm`` whose weights and epsilon to use.
    """
    assert isinstance(norm, nn.LayerNorm)
    device = x.device.type
    low = torch.is_autocast_enabled(device)
    dtype = torch.get_autocast_dtype(device) if low else x.dtype
    if gpu.usable(x):
        weights = (norm.weight, norm.bias, norm.eps)
        both: tuple[Tensor, Tensor] = gpu.kernels().add_norm(x, update, *weights, dtype)
        return both
    total = x if update is None else x + update
    normed = F.layer_norm(
        total, norm.normalized_shape, norm.weight, norm.bias, norm.eps
    )
    return total, normed.to(dtype)
