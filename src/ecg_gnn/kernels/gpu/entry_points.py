"""Every function that has Triton kernels."""

from ecg_gnn.kernels.gpu.additive import additive_attention
from ecg_gnn.kernels.gpu.dot import dot_product_attention
from ecg_gnn.kernels.gpu.edge_tiles import by_source, by_target
from ecg_gnn.kernels.gpu.norm import add_norm
from ecg_gnn.kernels.gpu.pointwise import bias_dropout, keep_mask
from ecg_gnn.kernels.gpu.ranking import MOST_SCORES, roc_auc
from ecg_gnn.kernels.gpu.reductions import column_sum
from ecg_gnn.kernels.gpu.sums import kept_degree, scaled_sum

__all__ = [
    "MOST_SCORES",
    "add_norm",
    "additive_attention",
    "bias_dropout",
    "by_source",
    "by_target",
    "column_sum",
    "dot_product_attention",
    "keep_mask",
    "kept_degree",
    "roc_auc",
    "scaled_sum",
]
