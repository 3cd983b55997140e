"""Message passing over a graph prepared once: the one door from models to edges.

``Adjacency`` holds a graph sorted both ways; the functions here are everything that
the modules of step 3 do with it. They are written in plain torch and hold nothing of
size ``[E, d]``: sums over neighbours run as bags of rows, edge scores in pieces.
"""

from ecg_gnn.kernels.adjacency import Adjacency
from ecg_gnn.kernels.attention import additive_attention, dot_product_attention
from ecg_gnn.kernels.neighbours import neighbour_mean, normalized_sum

__all__ = [
    "Adjacency",
    "additive_attention",
    "dot_product_attention",
    "neighbour_mean",
    "normalized_sum",
]
