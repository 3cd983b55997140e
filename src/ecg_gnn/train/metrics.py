"""Loss and metrics that stay on the device: fixed shapes, no host synchronisation."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.kernels import engine


def supervised_loss(
    logits: Tensor,
    y: Tensor,
    class_weights: Tensor | None = None,
    learned: Tensor | None = None,
) -> Tensor:
    """Cross-entropy; binary cross-entropy where there is one logit.

    With class weights ``[C]`` it is the weighted mean. ``learned`` ``[n]``, 0 or 1,
    says which nodes count; where none does the loss is zero.
    """
    if learned is not None:
        return _loss_of_learned(logits, y, class_weights, learned)
    if logits.size(1) > 1:
        return F.cross_entropy(logits, y, class_weights)
    target = y.to(logits.dtype)
    if class_weights is None:
        return F.binary_cross_entropy_with_logits(logits[:, 0], target)
    weight = class_weights[y]
    return F.binary_cross_entropy_with_logits(
        logits[:, 0], target, weight / weight.mean()
    )


def _loss_of_learned(
    logits: Tensor, y: Tensor, class_weights: Tensor | None, learned: Tensor
) -> Tensor:
    if logits.size(1) > 1:
        losses = F.cross_entropy(logits, y, reduction="none")
    else:
        losses = F.binary_cross_entropy_with_logits(
            logits[:, 0], y.to(logits.dtype), reduction="none"
        )
    weight = learned.to(losses.dtype)
    if class_weights is not None:
        weight = weight * class_weights[y]
    return (losses * weight).sum() / weight.sum().clamp_min(1e-9)


def accuracy(logits: Tensor, y: Tensor) -> Tensor:
    """Share of nodes whose highest logit is their class; one logit is cut at zero.

    NaN where a logit is: a diverged network has no score, and is never the best one.
    """
    predicted = logits[:, 0] > 0 if logits.size(1) == 1 else logits.argmax(dim=1)
    return _nan_if_any(logits, (predicted == y).double().mean())


def roc_auc(logits: Tensor, y: Tensor) -> Tensor:
    """Area under the ROC curve of two classes; tied scores count half.

    It is the Mann-Whitney statistic: the mean rank of the positives, where tied scores
    share the mean of their ranks. NaN where one class is absent or a score is NaN. Of
    two logits the difference is the score.
    """
    score = logits[:, -1] if logits.size(1) == 1 else logits[:, 1] - logits[:, 0]
    if engine.gpu_usable_on(score.device):
        functions = engine.gpu_kernels()
        if score.numel() <= functions.MOST_SCORES:
            area: Tensor = functions.roc_auc(score, y)
            return area
    ordered = score.sort().values
    below = torch.searchsorted(ordered, score.contiguous())
    up_to = torch.searchsorted(ordered, score.contiguous(), right=True)
    rank = (below + up_to + 1).double() / 2
    positive = y.double()
    num_positive = positive.sum()
    num_negative = y.numel() - num_positive
    excess = (rank * positive).sum() - num_positive * (num_positive + 1) / 2
    return _nan_if_any(score, excess / (num_positive * num_negative))


def _nan_if_any(values: Tensor, score: Tensor) -> Tensor:
    return torch.where(values.isnan().any(), torch.nan, score)


# Logits and classes to a score, by the names of ecg_gnn.system.metric_names.
METRICS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "accuracy": accuracy,
    "roc_auc": roc_auc,
}


def score_probabilities(metric: str, probabilities: Tensor, y: Tensor) -> float:
    """A metric of probabilities ``[n, C]`` instead of logits."""
    logits = probabilities.double().log()
    if logits.size(1) == 2:  # above zero from one half on
        logits = logits[:, 1:] + math.log(2)
    return float(METRICS[metric](logits, y))
