"""The search on a GPU by Triton kernels; here, without them, whether they can do it."""

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.ties import num_candidates
from ecg_gnn.kernels.engine import current_engine

_CAPABILITY = (8, 0)  # tensor cores that cut no more than the error bound assumes
_MAX_KEPT = 255
_NODES_PER_GROUP = 32  # twice as many groups as are looked at


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


def list_size(k: int) -> int:
    """How many groups, and then candidates, are kept: lists are powers of two."""
    return (1 << num_candidates(k).bit_length()) - 1


def usable(grid: Tensor, k: int) -> bool:
    """Whether ``search_tiled`` takes rows on a grid, and is worth its launches."""
    kept = list_size(k)
    enough = grid.size(0) > kept * _NODES_PER_GROUP
    return kept <= _MAX_KEPT and enough and available(grid)
