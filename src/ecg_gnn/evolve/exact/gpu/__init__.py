"""The search by Triton kernels; this module, without Triton, says where it works."""

import torch
from torch import Tensor

from ecg_gnn.evolve.exact.ties import num_candidates
from ecg_gnn.kernels.engine import gpu_usable_on

_CAPABILITY = (8, 0)  # tensor cores that cut no more than the error bound assumes
MAX_COLUMNS = 8192  # a program holds a whole row
_MAX_KEPT = 255
_NODES_PER_GROUP = 32  # twice as many groups as are looked at


def list_size(k: int) -> int:
    """How many groups, and then candidates, are kept: lists are powers of two."""
    return (1 << num_candidates(k).bit_length()) - 1


def usable(grid: Tensor, k: int) -> bool:
    """Whether ``search_tiled`` takes rows on a grid, and is worth its launches."""
    kept = list_size(k)
    return (
        gpu_usable_on(grid.device)
        and torch.cuda.get_device_capability(grid.device) >= _CAPABILITY
        and grid.size(1) <= MAX_COLUMNS
        and kept <= _MAX_KEPT
        and grid.size(0) > kept * _NODES_PER_GROUP
    )
