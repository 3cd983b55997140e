"""The three steps of the paper, written once: see ``pipeline.method``."""

from ecg_gnn.pipeline.classification import Classification
from ecg_gnn.pipeline.embed_ahead import (
    KeptEmbedding,
    embed_for_new_nodes,
    embed_together,
)
from ecg_gnn.pipeline.method import classify, embed, evolve
from ecg_gnn.pipeline.resolve import check_embeddings, choose_variants, evolves, resolve
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
    "make_embedder",
    "resolve",
]
