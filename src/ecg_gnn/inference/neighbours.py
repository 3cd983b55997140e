"""Step 2 for later: which nodes of a stored index are nearest to new rows."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ecg_gnn.config import EvolveConfig, known

# Scores are compared after rounding to this grid: what differs by less is a tie, which
# the lower number wins. Float64 sums are far finer than it.
_GRID = 2.0**30
_ROWS = 256


@torch.no_grad()
def nearest_stored(new: Tensor, index: Tensor, k: int, similarity: str) -> Tensor:
    """The ``k`` most similar rows of ``index`` for each new row, ``[M, k]``."""
    new, index = new.double(), index.double()
    if similarity == "cosine":
        new, index = F.normalize(new, dim=-1), F.normalize(index, dim=-1)
    largest = 1.0
    if similarity != "cosine":
        largest = float(max(new.norm(dim=1).amax(), index.norm(dim=1).amax()) ** 2)
    squares = index.square().sum(1) / 2 if similarity == "euclidean" else 0.0
    count, order = index.size(0), torch.arange(index.size(0))
    found = []
    for rows in new.split(_ROWS):
        score = (rows @ index.t() - squares) / max(largest, 1e-300)  # [rows, N]
        key = (score * _GRID).round().long() * count + (count - 1 - order)
        found.append(key.topk(k, dim=1).indices)
    return torch.cat(found) if found else torch.empty(0, k, dtype=torch.long)


def edges_to_new(new: Tensor, index: Tensor, config: EvolveConfig) -> Tensor:
    """Evolved edges into new nodes, numbered after the stored ones; none the other way.

    The evolved graph of the stored nodes stays as it was trained on.
    """
    num_stored, num_new = index.size(0), new.size(0)
    numbers = torch.arange(num_stored, num_stored + num_new)
    itself = torch.stack([numbers, numbers])
    k = known(config.k) - (config.self_loops == "within_k")
    parts = []
    if config.self_loops != "exclude":
        parts.append(itself)
    if config.self_loops != "only" and k > 0:
        nearest = nearest_stored(new, index, min(k, num_stored), config.similarity)
        targets = numbers.repeat_interleave(nearest.size(1))
        parts.append(torch.stack([nearest.flatten(), targets]))
    return torch.cat(parts, dim=1)
