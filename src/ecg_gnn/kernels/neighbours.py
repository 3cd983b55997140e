"""The two fixed aggregations: GCN's normalised sum and SAGE's mean."""

from torch import Tensor

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.products import weighted_sum


def normalized_sum(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``sum_v x_v / sqrt(d_in(u) d_out(v))``; a node without edges gets zero."""
    return weighted_sum(adjacency, adjacency.symmetric_weight, x)


def neighbour_mean(adjacency: Adjacency, x: Tensor) -> Tensor:
    """``mean_v x_v`` over the incoming edges; a node without edges gets zero."""
    return weighted_sum(adjacency, adjacency.mean_weight, x)
