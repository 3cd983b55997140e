"""Exact k nearest neighbours by tensor cores: half precision proposes, exact decides.

One pass over all pairs keeps the maxima of groups of columns; the groups that can
matter are looked at column by column, and the columns that can matter exactly. Where
the error bound cannot rule everybody else out, the row is left to the exact search.
"""

import torch
from torch import Tensor

from ecg_gnn.evolve.decision import settle
from ecg_gnn.evolve.gpu.halves import ROWS, Halves
from ecg_gnn.evolve.gpu.maxima import GROUP, group_maxima
from ecg_gnn.evolve.gpu.members import decide, member_scores
from ecg_gnn.evolve.gpu.select import top
from ecg_gnn.evolve.gpu.usable import list_size
from ecg_gnn.evolve.task import Task

_BUDGET = 2 << 30  # bytes of maxima and member scores at a time
SLACK = 1.5
"""How many error bounds below the k-th best score a column is still looked at. One
would do if the k-th best score had no error itself; real errors are far below their
bound."""


def search_tiled(task: Task) -> tuple[Tensor, Tensor, Tensor]:
    """As ``search_fast``: neighbours [N, k], which are proven [N], and a floor [N]."""
    canonical, k = task.canonical, task.k
    halves = Halves.of(canonical)
    num_nodes, device = canonical.num_nodes, canonical.grid.device
    found = torch.empty((num_nodes, k), dtype=torch.int64, device=device)
    sure = torch.empty(num_nodes, dtype=torch.bool, device=device)
    floor = torch.empty(num_nodes, dtype=torch.float64, device=device)
    panel = _rows_per_panel(task)
    for start in range(0, num_nodes, panel):
        part = slice(start, min(start + panel, num_nodes))
        with torch.cuda.device_of(found):  # Triton launches on the current device
            found[part], sure[part], floor[part] = _search_rows(task, halves, part)
        task.progress(int(sure[part].sum()))
    return found, sure, floor


def _rows_per_panel(task: Task) -> int:
    num_nodes = task.canonical.num_nodes
    if task.block_size is not None:
        size = task.block_size * GROUP
    else:
        size = _BUDGET // (4 * (num_nodes // GROUP + list_size(task.k) * GROUP))
    return num_nodes if size >= num_nodes else max(1, size // ROWS) * ROWS


def _search_rows(
    task: Task, halves: Halves, rows: slice
) -> tuple[Tensor, Tensor, Tensor]:
    k, count = task.k, list_size(task.k)
    slack = (SLACK * halves.bound[rows]).float()
    maxima = group_maxima(halves, rows.start, rows.stop)
    groups = top(maxima, count, k, slack)
    del maxima
    scores = member_scores(halves, rows.start, groups.places)
    members = top(scores, count, k, slack)
    decision = decide(task.canonical, halves, rows.start, groups, members, k)
    return settle(task, rows.start, decision)
