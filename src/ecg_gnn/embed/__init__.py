"""STEP 1: weak classifiers that embed the nodes, and the controls beside them."""

from ecg_gnn.embed.bgrl import BGRLEmbedder
from ecg_gnn.embed.cache import (
    EmbeddingCache,
    describe_embedder,
    embed_ahead,
    embed_nodes,
)
from ecg_gnn.embed.combine import ConcatEmbedder
from ecg_gnn.embed.contract import check_embedder
from ecg_gnn.embed.mlp import MLPEmbedder
from ecg_gnn.embed.plain import (
    FeaturesEmbedder,
    IdentityControl,
    OracleControl,
    PrecomputedEmbedder,
    RandomControl,
)
from ecg_gnn.embed.protocol import Embedder, Fit, FitsTogether, SplitMasks, hide_labels
from ecg_gnn.embed.trained import TrainedModelEmbedder

__all__ = [
    "BGRLEmbedder",
    "ConcatEmbedder",
    "Embedder",
    "EmbeddingCache",
    "FeaturesEmbedder",
    "Fit",
    "FitsTogether",
    "IdentityControl",
    "MLPEmbedder",
    "OracleControl",
    "PrecomputedEmbedder",
    "RandomControl",
    "SplitMasks",
    "TrainedModelEmbedder",
    "check_embedder",
    "describe_embedder",
    "embed_ahead",
    "embed_nodes",
    "hide_labels",
]
