"""Which nodes a step learns from, and which steps are evaluated."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ecg_gnn.system.checks import InputError, check_in_range
from ecg_gnn.system.seeds import generator_for

_EVALUATIONS = 20  # in a training by batches, if epochs do not decide otherwise


@dataclass(frozen=True, kw_only=True)
class EvalSchedule:
    """Evaluations after every so many steps, and after the last one.

    Examples:
        >>> schedule = EvalSchedule.of_full_batches(7, eval_every=3)
        >>> [step for step in range(1, 8) if schedule.is_due(step)]
        [3, 6, 7]
    """

    every: int
    steps: int

    def __post_init__(self) -> None:
        check_in_range("eval_every", self.every, 1, None)

    @classmethod
    def of_full_batches(cls, steps: int, eval_every: int | None) -> "EvalSchedule":
        """Unless told otherwise, every step is evaluated: the benchmark's protocol."""
        return cls(every=1 if eval_every is None else eval_every, steps=steps)

    @classmethod
    def of_batches(
        cls, steps: int, batches_per_epoch: int, eval_every: int | None
    ) -> "EvalSchedule":
        """Unless told otherwise once per epoch, but at least twenty times."""
        default = max(1, min(batches_per_epoch, steps // _EVALUATIONS))
        return cls(every=default if eval_every is None else eval_every, steps=steps)

    @classmethod
    def of_row_batches(
        cls, steps: int, batches_per_epoch: int, eval_every: int | None
    ) -> "EvalSchedule":
        """Unless told otherwise once per epoch, but at most twenty times."""
        default = max(batches_per_epoch, -(-steps // _EVALUATIONS))
        return cls(every=default if eval_every is None else eval_every, steps=steps)

    def is_due(self, step: int) -> bool:
        """Whether the step of this number, counted from one, is evaluated."""
        return step % self.every == 0 or step == self.steps


@dataclass(frozen=True, eq=False)
class BatchPlan:
    """Epochs of batches: every training node is a seed once per epoch.

    The batches of an epoch are equal up to one node, and no larger than ``size``; a
    small rest would be a step of much noise. All is a function of (seed, step), so that
    a resumed training sees the same batches. Each process takes a share of every batch.
    """

    nodes: Tensor
    size: int
    seed: int
    rank: int = 0
    processes: int = 1
    _order: dict[int, Tensor] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_in_range("batch_size", self.size, 1, None)
        smallest = self.nodes.numel() // self.batches_per_epoch
        if smallest < self.processes:
            raise InputError(
                f"'batch_size' must be large enough for a seed in each of "
                f"{self.processes} processes (got {self.size}, in batches of "
                f"{smallest} of {self.nodes.numel()} training nodes)"
            )

    @property
    def batches_per_epoch(self) -> int:
        """Steps until every training node was a seed."""
        return -(-self.nodes.numel() // self.size)

    def seeds(self, step: int) -> Tensor:
        """This process's share of a step's seeds; ``step`` counts from zero."""
        epoch, place = divmod(step, self.batches_per_epoch)
        batch = _part(self._ordered(epoch), place, self.batches_per_epoch)
        return _part(batch, self.rank, self.processes)

    def _ordered(self, epoch: int) -> Tensor:
        if epoch not in self._order:
            self._order.clear()  # one epoch after another: only one order is held
            generator = generator_for(self.seed, "epoch", epoch)
            order = torch.randperm(self.nodes.numel(), generator=generator)
            self._order[epoch] = self.nodes[order.to(self.nodes.device)]
        return self._order[epoch]


def _part(nodes: Tensor, place: int, parts: int) -> Tensor:
    """One of so many parts that are equal up to one node."""
    count = nodes.numel()
    return nodes[place * count // parts : (place + 1) * count // parts]
