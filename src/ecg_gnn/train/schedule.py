"""After which steps a training is evaluated."""

from dataclasses import dataclass

from ecg_gnn.system.checks import check_in_range

_EVALUATIONS = 20  # in a training by batches, if epochs do not decide otherwise


@dataclass(frozen=True, kw_only=True)
class EvalSchedule:
    """Evaluations after every so many steps, and after the last one.

    The defaults of all kinds of training are here.

    Attributes:
        every: Steps between evaluations.
        steps: Steps of the whole training.

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
