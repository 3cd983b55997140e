"""Which class is said of a node, where the most probable one is not the best answer.

Macro F1 counts a class of ten nodes as much as one of thousands, and the most probable
class is then never the rare one. So each class has a multiplier, chosen on held-out
nodes; probabilities themselves stay as they are.
"""

from collections.abc import Callable

import numpy as np

from ecg_gnn.ensemble.members import thinned
from ecg_gnn.ensemble.scoring import Array, Score, resampled

_FACTORS = np.exp(np.arange(-4, 15) / 2)  # from 1/7 to 1000
_PARTS = 5
_MOST_CELLS = 200_000  # rows times classes that a search reads
_ERRORS_IN_INTERVAL = 3.3  # standard errors; a gain below one of them is noise
_MOST_CLASSES = 100  # of more, each has too few nodes, and the search takes too long


def choose_multipliers(score: Score, y: Array, shares: Array) -> tuple[Array, Array]:
    """A multiplier for each class ``[C]``, and the rows, each times what others chose.

    A score of these rows is not flattered. All multipliers are one where the score does
    not depend on them, or gains no more than chance may give.
    """
    none = np.ones(shares.shape[1])
    if (judge := score.of_classes) is None or len(none) > _MOST_CLASSES:
        return none, shares
    part = np.empty(len(y), dtype=np.int64)
    part[np.argsort(y, kind="stable")] = np.arange(len(y)) % _PARTS
    most = _MOST_CELLS // len(none)
    kept = [thinned(np.flatnonzero(part != each), most) for each in range(_PARTS)]
    chosen = np.stack([_search(judge, y[rows], shares[rows]) for rows in kept])
    times = shares * chosen[part]
    before, after = shares.argmax(axis=1), times.argmax(axis=1)

    def gain(rows: Array) -> float:
        return judge(y[rows], after[rows]) - judge(y[rows], before[rows])

    everything = np.arange(len(y))
    low, high = resampled(gain, everything)
    if gain(everything) <= (high - low) / _ERRORS_IN_INTERVAL:
        return none, shares
    return np.exp(np.log(chosen).mean(axis=0)), times


def _search(judge: Callable[[Array, Array], float], y: Array, shares: Array) -> Array:
    """The best multiplier of one class after another, the nearest to one if equal."""
    width = shares.shape[1]
    multipliers, best = np.ones(width), judge(y, shares.argmax(axis=1))
    nearest_first = _FACTORS[np.argsort(np.abs(np.log(_FACTORS)))]
    for own in range(width == 2, width):  # of two, one is enough
        others = shares * multipliers
        others[:, own] = -1
        rival = others.argmax(axis=1)
        most = others[np.arange(len(y)), rival]
        for factor in nearest_first:
            said = np.where(shares[:, own] * factor > most, own, rival)
            if (value := judge(y, said)) > best + 1e-9:
                best, multipliers[own] = value, factor
    return multipliers
