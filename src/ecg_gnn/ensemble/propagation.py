"""Labels that spread along edges, further than two steps."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp

from ecg_gnn.ensemble.inputs import ALL, Floats, GraphInputs, Rows, Target
from ecg_gnn.ensemble.members import Fitted, Fold, Job, Member, Plain, Tensors
from ecg_gnn.ensemble.scoring import smooth

_REACHES = (0.5, 0.7, 0.9)
"""What part of a node's labels comes from its neighbours; the first fold chooses."""
_STEPS = 20
_PRIOR = 0.01
"""The weight of the overall mean, which is all that is known far from any label."""


@dataclass(frozen=True, eq=False)
class PropagationMember(Member):
    """How far labels spread; the same for every fold."""

    kind: ClassVar[str] = "propagation"

    reach: float

    def predict(self, inputs: GraphInputs, target: Target, rows: Rows = ALL) -> Floats:
        return _spread(inputs, target, self.reach)[rows]

    def state(self) -> tuple[Plain, Tensors]:
        return {"reach": self.reach}, {}

    @classmethod
    def from_state(cls, width: int, plain: Plain, tensors: Tensors) -> Self:
        return cls(width, float(plain["reach"]))


def fit_propagation(_seed: int, job: Job) -> Fitted:
    """Spread the labels of every fold as far as is best for the first."""
    inputs, target = job.inputs, job.target
    first, *_ = job.folds.values()

    def held_out(fold: Fold, reach: float) -> Floats:
        known = target.knowing(fold.train)
        return _spread(inputs, known, reach, job.out_of_time)[fold.held_out]

    def score(reach: float) -> float:
        y, judged = target.values[first.held_out], held_out(first, reach)
        return smooth(target.num_classes, job.metric).function(y, judged)

    reach = max(_REACHES, key=score)
    parts = [held_out(fold, reach) for fold in job.folds.values()]
    member = PropagationMember(target.width, reach)
    return member, job.out_of_fold(parts)


def _spread(
    inputs: GraphInputs,
    target: Target,
    reach: float,
    out_of_time: Callable[[], bool] = bool,
) -> Floats:
    """Zhou et al. (2004): mean labels, the nearer the heavier, ``[N, width]``."""
    scale = sp.diags(1 / np.sqrt(np.maximum(inputs.degrees, 1)))
    operator = (scale @ inputs.adjacency @ scale).astype(np.float32)
    labels, seen = target.columns, target.known.astype(np.float32)[:, None]
    start = np.hstack([labels, seen])
    mass = start
    for _ in range(_STEPS):
        if out_of_time():  # labels that spread less far would be another model
            raise InterruptedError("time ran out while labels spread")
        mass = reach * (operator @ mass) + (1 - reach) * start
    prior = labels.sum(axis=0) / max(float(seen.sum()), 1.0)
    found = (mass[:, :-1] + _PRIOR * prior) / (mass[:, -1:] + _PRIOR)
    return np.asarray(found, dtype=np.float32)
