"""How sure predictions are, sets that contain the truth, and which class is said.

Macro F1 counts a class of ten nodes as much as one of thousands, and the most probable
class is then never the rare one. So each class has a multiplier, chosen on held-out
nodes; probabilities themselves stay as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from ecg_gnn.ensemble.members import thinned
from ecg_gnn.ensemble.scoring import Array, Score, resampled

_SMALLEST = 1e-6
_STEEPEST = 3.0  # of slopes, their logarithm
_FACTORS = np.exp(np.arange(-4, 15) / 2)  # from 1/7 to 1000
_PARTS = 5
_MOST_CELLS = 200_000  # rows times classes that a search reads
_ERRORS_IN_INTERVAL = 3.3  # standard errors; a gain below one of them is noise
_MOST_CLASSES = 100  # of more, each has too few nodes, and the search takes too long


@dataclass(frozen=True)
class Scaling:
    """Calibrated probabilities are ``softmax(slope * log p + offsets)``."""

    slope: float = 1.0  # below one where predictions are too sure of themselves
    offsets: tuple[float, ...] = ()  # one per class

    def probabilities(self, shares: Array) -> Array:
        """Calibrated probabilities ``[n, C]``; rows sum to one."""
        logits = self.slope * np.log(np.clip(shares, _SMALLEST, 1))
        logits = logits + (np.array(self.offsets) if self.offsets else 0.0)
        logits -= logits.max(axis=1, keepdims=True)
        odds = np.exp(logits)
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def fit_scaling(shares: Array, y: Array) -> Scaling:
    """The scaling of the highest likelihood on nodes that were held out.

    With two classes the offset is fitted too; with more, only the slope: offsets of
    rare classes would be guesses.
    """
    if shares.shape[1] != 2:
        return fit_slope(shares, y)

    def of(values: Array) -> Scaling:
        return Scaling(float(np.exp(values[0])), (0.0, float(values[1])))

    def error(values: Array) -> float:
        return _log_loss(of(values), shares, y)

    found = minimize(error, np.zeros(2), method="Nelder-Mead", options={"maxiter": 200})
    return of(np.clip(found.x, -_STEEPEST, _STEEPEST))


def fit_slope(shares: Array, y: Array) -> Scaling:
    """As ``fit_scaling``, without offsets."""
    found = minimize_scalar(
        lambda log: _log_loss(Scaling(float(np.exp(log))), shares, y),
        bounds=(-_STEEPEST, _STEEPEST),
        options={"xatol": 1e-3},
    )
    return Scaling(float(np.exp(found.x)))


def _log_loss(scaling: Scaling, shares: Array, y: Array) -> float:
    true = scaling.probabilities(shares)[np.arange(len(y)), y]
    return -float(np.log(np.maximum(true, _SMALLEST)).mean())


def scaled(shares: Array, scaling: Scaling | None) -> Array:
    """Probabilities, calibrated if there is a scaling; numbers have none."""
    return shares if scaling is None else scaling.probabilities(shares)


def sorted_errors(predicted: Array, y: Array, *, is_number: bool) -> Array:
    """How wrong predictions of held-out nodes are: ``|y - p|``, or 1 - p(true class).

    A set is every class whose error would be no larger than the usual ones; of
    exchangeable nodes it covers the truth as often as it promises (split conformal
    prediction, Vovk et al.).
    """
    if is_number:
        return np.sort(np.abs(y - predicted[:, 0]))
    return np.sort(1 - predicted[np.arange(len(y)), y])


def usual_error(errors: Array, coverage: float) -> float:
    """The error, of sorted ones, that a share ``coverage`` of the truth stays below.

    Of numbers it is half the width of an interval.
    """
    rank = int(np.ceil((len(errors) + 1) * coverage))
    return float(errors[rank - 1]) if rank <= len(errors) else np.inf


def class_sets(errors: Array, shares: Array, coverage: float) -> NDArray[np.bool_]:
    """Which classes belong to each node's set.

    Where predictions are right more often than was asked for, the sets of the least
    certain nodes are empty: with any class they would cover too much.
    """
    # Below that, rounding would decide which certain classes are in no set.
    return np.asarray(1 - shares <= max(usual_error(errors, coverage), _SMALLEST))


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
