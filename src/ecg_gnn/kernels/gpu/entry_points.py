"""Every function that has Triton kernels."""

from ecg_gnn.kernels.gpu.additive import additive_backward as additive_backward
from ecg_gnn.kernels.gpu.additive import additive_forward as additive_forward
from ecg_gnn.kernels.gpu.dot import dot_backward as dot_backward
from ecg_gnn.kernels.gpu.dot import dot_forward as dot_forward
from ecg_gnn.kernels.gpu.edge_tiles import by_source as by_source
from ecg_gnn.kernels.gpu.edge_tiles import by_target as by_target
from ecg_gnn.kernels.gpu.norm import add_norm as add_norm
from ecg_gnn.kernels.gpu.pointwise import bias_dropout as bias_dropout
from ecg_gnn.kernels.gpu.pointwise import keep_mask as keep_mask
from ecg_gnn.kernels.gpu.reductions import MOST_SCORES as MOST_SCORES
from ecg_gnn.kernels.gpu.reductions import column_sum as column_sum
from ecg_gnn.kernels.gpu.reductions import roc_auc as roc_auc
from ecg_gnn.kernels.gpu.sums import kept_degree as kept_degree
from ecg_gnn.kernels.gpu.sums import scaled_sum as scaled_sum
