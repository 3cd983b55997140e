"""Gates: a weight per edge that is no softmax, and the sum of neighbours under it.

Only ``[E, H]`` is held, never ``[E, d]``; gradients are segment sums and dot products
along edges, so that one seed gives the same numbers every time.
"""

from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.attention import take
from ecg_gnn.kernels.products import weighted_sum
from ecg_gnn.kernels.weighted import is_weighted


def edge_scores(adjacency: Adjacency, scores: Tensor) -> Tensor:
    """``scores[v, 0] + scores[u, 1]`` of every edge v -> u, in target order.

    Args:
        adjacency: The graph.
        scores: Of every node as a source and as a target. ``[N, 2, H]``

    Returns:
        ``[E, H]``
    """
    source, target = scores.unbind(1)
    return take(adjacency, source, False) + take(adjacency, target, True)


def gated_sum(adjacency: Adjacency, gate: Tensor, x: Tensor) -> Tensor:
    """``sum_v gate_uv x_v`` over the kept edges, each times what it weighs.

    Args:
        adjacency: The graph.
        gate: In target order. ``[E]``
        x: ``[N, d]``
    """
    if adjacency.kept is not None:
        gate = gate * adjacency.kept
    if is_weighted(adjacency):
        gate = gate * adjacency.edge_weight
    return weighted_sum(adjacency, gate[:, None].to(x.dtype), x[..., None])[..., 0]
