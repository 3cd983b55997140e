"""Steps 1 and 2 of a model that is kept: its embedder, its index, its evolved graph."""

from typing import NamedTuple

import torch
from torch import Tensor

from ecg_gnn.config import RunConfig, known
from ecg_gnn.cross_fitting import join_models, leave_out, searches
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embedders import Workspace, reads_labels
from ecg_gnn.evolve import EvolvedGraph, knn_graph
from ecg_gnn.inference.embedding import FittedEmbedder, StoredEmbedder, fit_embedder
from ecg_gnn.system.seeds import derive_seed

CONTROLS = ("none", "identity")


class FittedGraph(NamedTuple):
    """What new nodes are embedded with and compared to, and the graph itself.

    Attributes:
        embedder: Embeds new nodes; None for the controls.
        z: The embeddings among which new nodes find neighbours. ``[N, D]``
        edges: The evolved graph; None without one. ``[2, E]``
    """

    embedder: StoredEmbedder | None
    z: Tensor | None
    edges: Tensor | None


def fit_evolved(
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    embedding: str,
    workspace: Workspace,
) -> FittedGraph:
    """Embed and evolve as a run would.

    Cross-fitted, neighbours are found by the model of a node's fold, or, of nodes that
    train none, by all models. For new nodes, of which no model was trained on one, the
    first model is kept and finds all k.
    """
    if embedding in CONTROLS:
        return FittedGraph(None, None, _loops(dataset.num_nodes, embedding))
    if not is_cross_fitted(embedding, config):
        embedder, z = fit_embedder(embedding, dataset.data(), split, config, workspace)
        return FittedGraph(embedder, z, _neighbours(z, config, embedding, split))
    folds, parts = leave_out(split, config)
    label_free: dict[str, FittedEmbedder] = {}  # one fit serves all folds
    fitted = [
        fit_embedder(embedding, dataset.data(), part, config, workspace, label_free)
        for part in parts
    ]
    found = [
        [
            EvolvedGraph(_neighbours(z, settings, embedding, split))
            for settings in searches(config, dataset.num_nodes)
        ]
        for _, z in fitted
    ]
    joined = join_models(found, folds, split, config)
    return FittedGraph(*fitted[0], joined.edge_index)


def is_cross_fitted(embedding: str, config: RunConfig) -> bool:
    """Whether one model per fold embeds: what reads no labels needs none."""
    return config.embed.cross_fit > 0 and reads_labels(embedding)


def _loops(num_nodes: int, embedding: str) -> Tensor | None:
    if embedding == "none":
        return None
    numbers = torch.arange(num_nodes)
    return torch.stack([numbers, numbers])


def _neighbours(z: Tensor, config: RunConfig, embedding: str, split: Split) -> Tensor:
    own_split = (split.index,) if reads_labels(embedding) else ()
    return knn_graph(
        z.to(config.device),
        known(config.evolve.k),
        metric=config.evolve.similarity,
        self_loops=config.evolve.self_loops,
        symmetric=config.evolve.symmetric,
        seed=derive_seed(config.seed, "ties", embedding, *own_split),
        knn=config.evolve.knn,
    ).cpu()
