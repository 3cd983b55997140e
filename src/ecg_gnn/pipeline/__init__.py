"""The three steps of the paper, written once: see ``pipeline.method``."""

from ecg_gnn.pipeline.choose_variants import choose_variants, evolves
from ecg_gnn.pipeline.embed_ahead import (
    KeptEmbedding,
    embed_for_new_nodes,
    embed_together,
)
from ecg_gnn.pipeline.method import classify, embed, evolve, is_cross_fitted
from ecg_gnn.pipeline.preflight import check_embeddings
from ecg_gnn.pipeline.resolve import resolve
from ecg_gnn.pipeline.training import Classification
from ecg_gnn.pipeline.workspace import Workspace, make_embedder

__all__ = [
    "Classification",
    "KeptEmbedding",
    "Workspace",
    "check_embeddings",
    "choose_variants",
    "classify",
    "embed",
    "embed_for_new_nodes",
    "embed_together",
    "evolve",
    "evolves",
    "is_cross_fitted",
    "make_embedder",
    "resolve",
]
