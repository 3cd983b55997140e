"""Message passing over a graph prepared once: the one door from models to edges.

``Adjacency`` holds a graph sorted both ways; the functions here are everything that
the modules of step 3 do with it. Each has a reference in plain torch, which holds
nothing of size ``[E, d]``, and a compiled twin for CPUs where that is faster.
"""

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.attention import (
    additive_attention,
    dot_product_attention,
    edge_scores,
    gated_sum,
)
from ecg_gnn.kernels.dense import (
    add_norm,
    dropout,
    joint_linear,
    linear_dropout,
    product,
)
from ecg_gnn.kernels.engine import Engine, current_engine, using_engine
from ecg_gnn.kernels.neighbour_sums import (
    neighbour_mean,
    neighbour_sum,
    normalized_sum,
)
from ecg_gnn.kernels.randomness import StepSeeds, keep_mask
from ecg_gnn.kernels.sampled import SampledAdjacency, sampled_adjacency

__all__ = [
    "Adjacency",
    "Engine",
    "SampledAdjacency",
    "StepSeeds",
    "add_norm",
    "additive_attention",
    "current_engine",
    "dot_product_attention",
    "dropout",
    "edge_scores",
    "gated_sum",
    "joint_linear",
    "keep_mask",
    "linear_dropout",
    "neighbour_mean",
    "neighbour_sum",
    "normalized_sum",
    "product",
    "sampled_adjacency",
    "using_engine",
]
