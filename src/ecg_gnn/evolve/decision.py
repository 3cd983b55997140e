"""What exact similarities with all candidates say about some rows."""

from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.evolve.task import Task
from ecg_gnn.evolve.ties import Boundary


class Decision(NamedTuple):
    """The candidates of some rows, compared exactly."""

    nodes: Tensor  # [n, c] int64, the number of nodes where there is no candidate
    scores: Tensor  # [n, c] float64, exact; may be undefined, as nodes, unless tied
    kth: Tensor  # [n] float64, the k-th of them
    sure: Tensor  # [n] bool: nobody else reaches it, not even as a tie
    tied: Tensor  # [n] bool: more than one could be the k-th
    found: Tensor  # [n, k] int64: the k best, ascending; undefined where tied

    @classmethod
    def empty(cls, rows: int, width: int, k: int, device: torch.device) -> "Decision":
        """Room for ``rows`` decisions among ``width`` candidates."""
        return cls(
            torch.empty((rows, width), dtype=torch.int64, device=device),
            torch.empty((rows, width), dtype=torch.float64, device=device),
            torch.empty(rows, dtype=torch.float64, device=device),
            torch.empty(rows, dtype=torch.bool, device=device),
            torch.empty(rows, dtype=torch.bool, device=device),
            torch.empty((rows, k), dtype=torch.int64, device=device),
        )


def settle(task: Task, start: int, decision: Decision) -> tuple[Tensor, Tensor, Tensor]:
    """Draw among ties: neighbours [n, k] of the rows from ``start`` on, and more.

    Which of them are proven right [n], and a floor of the k-th similarity [n].
    """
    simple = decision.sure & ~decision.tied
    found = task.named(decision.found.masked_fill_(~simple.unsqueeze(1), 0))
    tied = (decision.sure & decision.tied).nonzero().squeeze(1)
    if tied.numel():
        # The draw goes by rank among ascending ids.
        nodes, order = task.named(decision.nodes[tied]).sort(1)
        scores = decision.scores[tied].gather(1, order)
        boundary = Boundary.at(scores, decision.kth[tied], nodes)
        row = torch.arange(tied.numel(), device=tied.device)
        own = task.named(tied + start)
        found[tied] = boundary.choose(task.k, task.key, own, row, None)
    return found, decision.sure, decision.kth
