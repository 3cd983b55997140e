"""Nodes cut into blocks, so that what is read for one block is bounded."""

import torch
from torch import Tensor

_BYTES = 2**28
_EDGES = 50_000_000


def cut_into_blocks(
    nodes: Tensor, rows: Tensor, *, limit: int, at_least: int = 1
) -> list[Tensor]:
    """Consecutive nodes for which at most so many rows are read together.

    Up to one node's own: a block ends with the node that reaches the limit.

    Args:
        nodes: Which nodes, in what order. ``[n]``
        rows: What is read for each node of the graph. ``[N]``
        limit: Rows per block.
        at_least: How many blocks to make of rows that a limit would allow to be one.
    """
    cost = rows[nodes]
    total = cost.cumsum(0)
    share = -(-int(total[-1]) // at_least)
    number = (total - cost) // max(1, min(limit, share))
    sizes = torch.unique_consecutive(number, return_counts=True)[1]
    return list(nodes.split(sizes.tolist()))


def fits_at_once(num_nodes: int, num_edges: int, width: int) -> bool:
    """Whether a whole graph is small enough to be one block."""
    return num_nodes <= rows_at_once(width) and num_edges <= _EDGES


def rows_at_once(width: int) -> int:
    """How many rows of so many float32 numbers may be read together: 256 MiB."""
    return max(1, _BYTES // (4 * width))
