"""Calibrated probabilities from logits."""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from torch import Tensor

_MAX_TEMPERATURE = 20.0


@dataclass(frozen=True)
class Calibration:
    """Probabilities are ``softmax(logits / temperature - log(weights))``."""

    temperature: float = 1.0  # above one if the network is overconfident
    weights: tuple[float, ...] | None = None
    """The classes' weights in training, which are undone here: they change what the
    network learns, not how frequent a class is."""

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """From logits ``[N, C]``, or ``[N, 1]`` for two classes, to ``[N, C]``."""
        if logits.size(1) == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
        scores = logits.double() / self.temperature
        if self.weights is not None:
            scores = scores - torch.tensor(self.weights, dtype=torch.float64).log()
        return scores.log_softmax(dim=1)

    def probabilities(self, logits: Tensor) -> NDArray[np.float64]:
        """Probabilities of every class in float64; rows sum to one."""
        shares: NDArray[np.float64] = self.log_probabilities(logits).exp().numpy()
        return shares


def fit_temperature(
    logits: Tensor, y: Tensor, weights: tuple[float, ...] | None
) -> Calibration:
    """Choose the temperature of the highest likelihood (Guo et al., 2017).

    The nodes are others than those that were trained on.
    """

    def loss(log_temperature: float) -> float:
        trial = Calibration(math.exp(log_temperature), weights)
        return float(F.nll_loss(trial.log_probabilities(logits), y))

    bound = math.log(_MAX_TEMPERATURE)
    best = minimize_scalar(loss, bounds=(-bound, bound), method="bounded")
    return Calibration(math.exp(float(best.x)), weights)


def calibration_error(probabilities: NDArray[np.float64], y: Tensor) -> float:
    """Expected calibration error: |confidence − accuracy|, averaged over ten bins."""
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == y.numpy()
    bins = np.minimum((confidence * 10).astype(int), 9)
    gaps = [
        abs(confidence[bins == b].mean() - right[bins == b].mean()) * (bins == b).sum()
        for b in np.unique(bins)
    ]
    return float(sum(gaps) / len(confidence))
