"""A part of a network is trained alone before the whole."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ecg_gnn.nn.network import Known


def warm_up(
    network: nn.Module,
    logits: Callable[[], Tensor],
    known: Known,
    *,
    steps: int,
    lr: float,
) -> None:
    """Full-batch AdamW on the training labels; what the logits do not use stays.

    There are no validation labels here, so the last weights are kept.

    Args:
        network: Whose weights are trained.
        logits: Of every node, one column per class, or one for two classes.
        known: The training labels.
        steps: How many steps.
        lr: Learning rate.
    """
    if not steps:
        return
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.0)
    network.train()
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        found = logits().index_select(0, known.train_index)
        _loss(found, known.train_y).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _loss(logits: Tensor, y: Tensor) -> Tensor:
    if logits.size(1) == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], y.to(logits.dtype))
    return F.cross_entropy(logits, y)
