"""Whether the Triton kernels can do a search; imports no Triton."""

from ecg_gnn.evolve.gpu.available import available
from ecg_gnn.evolve.task import Task, num_candidates

_MOST_KEPT = 255
_NODES_PER_GROUP = 32  # twice as many groups as are looked at


def list_size(k: int) -> int:
    """How many groups, and then candidates, are kept: lists are powers of two."""
    return (1 << num_candidates(k).bit_length()) - 1


def usable(task: Task) -> bool:
    """Whether ``search_tiled`` takes this task, and is worth its launches."""
    grid, kept = task.canonical.grid, list_size(task.k)
    enough = grid.size(0) > kept * _NODES_PER_GROUP
    return kept <= _MOST_KEPT and enough and available(grid)
