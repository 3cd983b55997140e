"""The GPU twin of the reference: Triton kernels, compiled where they first run."""

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from ecg_gnn.kernels.engine import current_engine

_TYPES = (torch.float32, torch.bfloat16, torch.float64)
_MAX_CHANNELS = 4096


@cache
def _triton_installed() -> bool:
    return find_spec("triton") is not None


def usable_on(device: torch.device) -> bool:
    """Whether the Triton kernels are to be used on a device."""
    return device.type == "cuda" and current_engine() == "fast" and _triton_installed()


def usable(x: Tensor, num_heads: int = 1) -> bool:
    """Whether the Triton kernels compute on ``x`` with so many heads."""
    return (
        usable_on(x.device)
        and x.dtype in _TYPES
        and x.shape[1:].numel() <= _MAX_CHANNELS
        and num_heads & (num_heads - 1) == 0
    )


def kernels() -> Any:
    """What has Triton kernels; only where they are usable is Triton there."""
    return import_module("ecg_gnn.kernels.gpu.entry_points")
