"""How much each member counts: greedy selection on out-of-fold predictions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecg_gnn.ensemble.scoring import Score

_STEPS = 25
_DRAWS = 20
_HALF_TRUSTED = 400
"""Nodes at which greedy weights and even ones count the same."""
_GOOD = 0.5
"""Members in the better half share even weights."""
# Gains below this are noise; a smaller ensemble is as good.
_LEAST_GAIN = 1e-5
# Members that count for less than this are left out.
_LEAST_WEIGHT = 0.02
# Ensembles judged by rank or by class are also held to their loss, which is smoother.
_LOSS_SHARE = 0.1


def blend_weights(
    score: Score,
    smooth: Score,
    y: NDArray[Any],
    predicted: Sequence[NDArray[Any]],
    seed: int = 0,
) -> NDArray[np.float64]:
    """Weights of the members, which sum to one.

    Caruana et al. (2004): add, with replacement, whichever member helps most. Done on
    several draws of the nodes and averaged, so that no accident of one draw decides.

    Args:
        score: What the ensemble is to be good at.
        smooth: A smooth score (of the loss) that settles what the other cannot.
        y: True values of nodes that no member was trained on. ``[n]``
        predicted: What the members say of them, ``[n, width]`` each.
        seed: Of the draws.
    """
    generator = np.random.default_rng(seed)
    stacked = np.stack(predicted)
    total = np.zeros(len(stacked))
    for _ in range(_DRAWS):
        rows = np.sort(generator.permutation(len(y))[: max(2, (2 * len(y)) // 3)])
        total += _greedy(score, smooth, y[rows], stacked[:, rows])
    chosen = total / total.sum()
    # On few nodes the choice is mostly luck, and the mean of all good members is safer.
    trust = len(y) / (len(y) + _HALF_TRUSTED)
    weights = trust * chosen + (1 - trust) * _evenly(score, y, stacked)
    weights[weights < min(_LEAST_WEIGHT, weights.max())] = 0
    return np.asarray(weights / weights.sum())


def _greedy(
    score: Score, smooth: Score, y: NDArray[Any], stacked: NDArray[Any]
) -> NDArray[np.float64]:
    def worth(mean: NDArray[Any]) -> float:
        return score.function(y, mean) + _LOSS_SHARE * smooth.function(y, mean)

    counts = np.zeros(len(stacked))
    mean = np.zeros_like(stacked[0])
    best = -np.inf
    for step in range(_STEPS):
        trials = [worth((mean * step + each) / (step + 1)) for each in stacked]
        place = int(np.argmax(trials))
        if trials[place] <= best + _LEAST_GAIN:
            break
        best = trials[place]
        mean = (mean * step + stacked[place]) / (step + 1)
        counts[place] += 1
    return np.asarray(counts / counts.sum())


def _evenly(
    score: Score, y: NDArray[Any], stacked: NDArray[Any]
) -> NDArray[np.float64]:
    """The same weight for every member of the better half."""
    scores = np.array([score.function(y, each) for each in stacked])
    count = max(1, round(_GOOD * len(scores)))
    good = scores >= np.sort(scores)[-count]
    return np.asarray(good / good.sum())
