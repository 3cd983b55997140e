"""Whether Triton kernels run on a tensor; imports no Triton."""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ecg_gnn.kernels.engine import current_engine

_CAPABILITY = (8, 0)  # tensor cores that cut no more than the error bound assumes


@cache
def _triton_installed() -> bool:
    return find_spec("triton") is not None


def available(x: Tensor) -> bool:
    """Whether ``x`` is where Triton kernels compute, and they may."""
    return (
        x.is_cuda
        and current_engine() == "fast"
        and _triton_installed()
        and torch.cuda.get_device_capability(x.device) >= _CAPABILITY
    )
