"""How much each member counts: greedy selection on out-of-fold predictions."""

from collections.abc import Sequence

import numpy as np

from ecg_gnn.ensemble.scoring import Array, Score

_STEPS = 25
_DRAWS = 20
# Nodes at which greedy weights and those by score alone count the same.
_HALF_TRUSTED = 400
# A member this much worse than another has 1/e of its weight by score alone.
_SPREAD = 0.02
# Gains below this are noise; a smaller ensemble is as good.
_LEAST_GAIN = 1e-5
# Members that count for less than this are left out.
_LEAST_WEIGHT = 0.01
# Greedy steps look at the loss, which is smooth, and a little at the metric.
_METRIC_SHARE = 0.1


def blend_weights(
    score: Score,
    smooth: Score,
    y: Array,
    predicted: Sequence[Array],
    families: Sequence[str],
) -> Array:
    """Weights of the members, which sum to one.

    Caruana et al. (2004): add, with replacement, whichever family helps most. Done on
    several draws of the nodes and averaged, so that no accident of one draw decides.
    The nodes are such that no member was trained on. Members that differ only in their
    first weights are one family, and count the same. ``smooth`` is the loss as a score.
    """
    names = list(dict.fromkeys(families))
    belongs = np.array([[name == one for one in families] for name in names])
    means = belongs / belongs.sum(axis=1, keepdims=True)  # [families, members]
    stacked = np.einsum("fm,mnw->fnw", means, np.stack(predicted))
    generator = np.random.default_rng(0)
    total = np.zeros(len(stacked))
    for _ in range(_DRAWS):
        rows = np.sort(generator.permutation(len(y))[: max(2, (2 * len(y)) // 3)])
        total += _greedy(score, smooth, y[rows], stacked[:, rows])
    # On few nodes the choice is mostly luck, and a mean of what is good is safer.
    trust = len(y) / (len(y) + _HALF_TRUSTED)
    weights = trust * total / total.sum() + (1 - trust) * _by_score(score, y, stacked)
    weights[weights < min(_LEAST_WEIGHT, weights.max())] = 0
    return np.asarray(weights / weights.sum() @ means)


def _greedy(score: Score, smooth: Score, y: Array, stacked: Array) -> Array:
    def worth(mean: Array) -> float:
        return smooth.function(y, mean) + _METRIC_SHARE * score.function(y, mean)

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


def _by_score(score: Score, y: Array, stacked: Array) -> Array:
    scores = np.array([score.function(y, each) for each in stacked])
    odds = np.exp((scores - scores.max()) / _SPREAD)
    return np.asarray(odds / odds.sum())
