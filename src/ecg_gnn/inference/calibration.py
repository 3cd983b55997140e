"""From logits to probabilities that can be believed."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

_HOTTEST = 20.0


@dataclass(frozen=True)
class Calibration:
    """Probabilities are ``softmax(logits / temperature - log(weights))``.

    Attributes:
        temperature: Above one where the network is surer than it is right.
        weights: The classes' weights in training, which are taken back: they change
            what the network looks at, not how frequent a class is.
    """

    temperature: float = 1.0
    weights: tuple[float, ...] | None = None

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """``[N, C]``, or ``[N, 1]`` of two classes, to ``[N, C]`` in float64."""
        scores = _both(logits.double()) / self.temperature
        if self.weights is not None:
            scores = scores - torch.tensor(self.weights, dtype=torch.float64).log()
        return scores.log_softmax(dim=1)

    def probabilities(self, logits: Tensor) -> NDArray[np.float64]:
        """Probabilities of every class, rows sum to one."""
        found: NDArray[np.float64] = self.log_probabilities(logits).exp().numpy()
        return found


def fit_temperature(
    logits: Tensor, y: Tensor, weights: tuple[float, ...] | None
) -> Calibration:
    """The temperature of the highest likelihood (Guo et al., 2017).

    Args:
        logits: Of nodes that were not trained on. ``[n, C]``
        y: Their classes. ``[n]``
        weights: The classes' weights in training, if there were any.
    """

    def loss(log_temperature: float) -> float:
        trial = Calibration(math.exp(log_temperature), weights)
        return float(F.nll_loss(trial.log_probabilities(logits), y))

    bound = math.log(_HOTTEST)
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    return Calibration(math.exp(float(best.x)), weights)


def calibration_error(probabilities: NDArray[np.float64], y: Tensor) -> float:
    """How far confidence is from accuracy, on average over ten bins of confidence."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y.numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).sum()
        for b in np.unique(bins)
    ]
    return float(sum(gaps) / len(confidence))


def _both(logits: Tensor) -> Tensor:
    """One logit of two classes as two."""
    if logits.size(1) > 1:
        return logits
    return torch.cat([torch.zeros_like(logits), logits], dim=1)
