"""Evolved graphs that many configurations share are made once."""

import hashlib
import json

import torch

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import EMBEDDINGS, RunConfig, is_control
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embed.protocol import hide_labels
from ecg_gnn.embedders import Workspace, make_embedder
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline import evolve_graph
from ecg_gnn.scale import all_have
from ecg_gnn.study.identity import canonical
from ecg_gnn.study.variants import variant_of
from ecg_gnn.train.checkpoint import content_hash


def shared_graph(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> EvolvedGraph:
    """``pipeline.evolve_graph``, kept beside the embeddings it was made from."""
    if workspace.cache is None or name not in (*EMBEDDINGS, "random"):
        return evolve_graph(name, dataset, split, config, workspace)
    kept = EmbeddingCache(workspace.cache.folder / "graphs")
    key = _key(name, dataset, split, config, workspace)
    weighted = config.evolve.weights != "uniform" and not is_control(name)
    stored = kept.load(key)
    weights = kept.load(f"{key}-weights") if weighted else None
    is_here = stored is not None and (weights is not None or not weighted)
    if all_have(is_here) and stored is not None:
        recall = kept.load(f"{key}-recall")
        found = None if recall is None else float(recall)
        return EvolvedGraph(stored.long(), weights, found)
    graph = evolve_graph(name, dataset, split, config, workspace)
    if graph.recall is not None:  # first: without it the graph would pass for exact
        recall = torch.tensor([graph.recall], dtype=torch.float64)
        kept.store(f"{key}-recall", recall)
    kept.store(key, graph.edge_index.to(torch.int32))
    if graph.edge_weight is not None:
        kept.store(f"{key}-weights", graph.edge_weight)
    return graph


def _key(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> str:
    """Everything that the graph is made from: settings, and the data that is seen."""
    settings = canonical(config, variant_of(name), "statistics").to_dict()
    made_by = [NUMERICS, config.device, config.train.precision, config.seed]
    tensors = [dataset.x, dataset.edge_index]
    if make_embedder(name, config, workspace).uses_labels:
        shown = hide_labels(dataset.data(), split)
        tensors += [shown.y, split.train_mask, split.val_mask]
        made_by.append(split.index)
    settings.pop("dataset")
    content = json.dumps([made_by, settings, content_hash(tensors)])
    return hashlib.sha256(content.encode()).hexdigest()
