"""How sure predictions are: calibrated probabilities, sets that contain the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

Array = NDArray[Any]
_SMALLEST = 1e-6
_STEEPEST = 3.0  # of slopes, their logarithm


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
