"""The settings of training by batches, which are part of how a run is trained."""

from dataclasses import dataclass

from ecg_gnn.sections import Section
from ecg_gnn.system.checks import InputError, check_in_range

DEFAULT_FANOUT = (10,)


@dataclass(frozen=True, kw_only=True)
class BatchSettings(Section):
    """How a graph that is too large for full-batch steps is trained on.

    Examples:
        >>> BatchSettings(batch_size=1024, fanout=(15, 5)).fanouts(3)
        (15, 5, 5)
    """

    batch_size: int = 0
    """Training nodes per step, over all processes; 0: full-batch steps"""
    fanout: tuple[int, ...] = DEFAULT_FANOUT
    """Neighbours that a node draws: in the input graph, then in each evolved one, the
    last for all that follow; -1: all"""
    eval_every: int | None = None
    """Steps between evaluations; unless given, one full-batch step, or of batches an
    epoch or a twentieth of the training, whichever is shorter"""

    def _check(self) -> None:
        check_in_range("batch_size", self.batch_size, 0, None)
        if not self.fanout or any(drawn != -1 and drawn < 1 for drawn in self.fanout):
            raise InputError(
                "'fanout' must be -1 (all neighbours) or at least 1, once or for each "
                f"graph (got {list(self.fanout)})"
            )
        if self.eval_every is not None:
            check_in_range("eval_every", self.eval_every, 1, None)
        if not self.batch_size and self.fanout != DEFAULT_FANOUT:
            raise InputError(
                "'batch_size' must be at least 1 with 'fanout', which full-batch "
                f"steps do not have (got {self.batch_size})"
            )

    def fanouts(self, num_graphs: int) -> tuple[int, ...]:
        """One for each of so many graphs."""
        missing = max(0, num_graphs - len(self.fanout))
        return (self.fanout + self.fanout[-1:] * missing)[:num_graphs]
