"""Message passing over a graph prepared once: the one door from models to edges.

``Adjacency`` holds a graph sorted both ways; the functions here are everything that
the modules of step 3 do with it. Each has a reference in plain torch, which holds
nothing of size ``[E, d]``, and a compiled twin for CPUs where that is faster.
"""

from ecg_gnn.kernels.adjacency import Adjacency as Adjacency
from ecg_gnn.kernels.adjacency import SampledAdjacency as SampledAdjacency
from ecg_gnn.kernels.attention import additive_attention as additive_attention
from ecg_gnn.kernels.attention import dot_product_attention as dot_product_attention
from ecg_gnn.kernels.attention import edge_scores as edge_scores
from ecg_gnn.kernels.attention import edge_softmax as edge_softmax
from ecg_gnn.kernels.attention import gated_sum as gated_sum
from ecg_gnn.kernels.dense import add_norm as add_norm
from ecg_gnn.kernels.dense import dropout as dropout
from ecg_gnn.kernels.dense import joint_linear as joint_linear
from ecg_gnn.kernels.dense import linear_dropout as linear_dropout
from ecg_gnn.kernels.dense import product as product
from ecg_gnn.kernels.engine import current_engine as current_engine
from ecg_gnn.kernels.engine import using_engine as using_engine
from ecg_gnn.kernels.hashing import StepSeeds as StepSeeds
from ecg_gnn.kernels.hashing import keep_mask as keep_mask
from ecg_gnn.kernels.neighbour_sums import edge_dot as edge_dot
from ecg_gnn.kernels.neighbour_sums import hop_sums as hop_sums
from ecg_gnn.kernels.neighbour_sums import neighbour_mean as neighbour_mean
from ecg_gnn.kernels.neighbour_sums import neighbour_sum as neighbour_sum
from ecg_gnn.kernels.neighbour_sums import normalized_sum as normalized_sum
