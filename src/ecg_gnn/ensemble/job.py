"""What a candidate is given to train on: the graph, some folds, and how long it may."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ecg_gnn.ensemble.folds import Fold
from ecg_gnn.ensemble.inputs import GraphInputs, Target


@dataclass(frozen=True)
class Job:
    """One candidate on some folds."""

    inputs: GraphInputs
    target: Target
    folds: dict[int, Fold]
    metric: str
    deadline: float
    """On the monotonic clock: training stops there and keeps what it has."""
    out_of_time: Callable[[], bool]
    """Whether the deadline has passed, or the user has had enough."""
    stopped: Callable[[], bool] = bool
    """Whether the user has had enough."""
    device: str = "cpu"
    """Where networks are trained."""

    def to_send(self) -> "Job":
        """The job as another machine needs it: with the time that is left."""
        left = self.deadline - time.monotonic()
        return replace(self, deadline=left, out_of_time=bool, stopped=bool)

    def received(self) -> "Job":
        """The job on another machine, with that machine's clock."""
        end = time.monotonic() + self.deadline

        def out_of_time() -> bool:
            return time.monotonic() > end

        # Arrays that come from elsewhere may be such that cannot be written to.
        folds = {
            number: Fold(fold.train.copy(), fold.held_out.copy())
            for number, fold in self.folds.items()
        }
        return replace(self, folds=folds, deadline=end, out_of_time=out_of_time)
