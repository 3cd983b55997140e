"""Evolved graphs that many configurations share are made once."""

from collections.abc import Callable

import torch

from ecg_gnn._version import NUMERICS
from ecg_gnn.config import EMBEDDINGS, RunConfig, is_control
from ecg_gnn.config.identity import canonical, digest
from ecg_gnn.config.variants import variant_of
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import EmbeddingCache
from ecg_gnn.embed.protocol import hide_labels
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline.workspace import Workspace, make_embedder
from ecg_gnn.scale import all_have
from ecg_gnn.train.checkpoint import content_hash

_EDGES, _WEIGHTS, _RECALL = "edges", "weights", "recall"


def kept_graph(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
    *,
    make: Callable[[], EvolvedGraph],
) -> EvolvedGraph:
    """What ``make`` gives, kept beside the embeddings it is made from."""
    if workspace.cache is None or name not in (*EMBEDDINGS, "random"):
        return make()
    cache = EmbeddingCache(workspace.cache.folder / "graphs")
    key = _key(name, dataset, split, config, workspace)
    weighted = config.evolve.weights != "uniform" and not is_control(name)
    stored = cache.load(key, _EDGES) or {}
    is_here = _EDGES in stored and (_WEIGHTS in stored or not weighted)
    if all_have(is_here):
        recall = stored.get(_RECALL)
        return EvolvedGraph(
            stored[_EDGES].long(),
            stored.get(_WEIGHTS) if weighted else None,
            None if recall is None else float(recall),
        )
    graph = make()
    tensors = {_EDGES: graph.edge_index.to(torch.int32)}
    if graph.edge_weight is not None:
        tensors[_WEIGHTS] = graph.edge_weight
    if graph.recall is not None:
        tensors[_RECALL] = torch.tensor([graph.recall], dtype=torch.float64)
    cache.store(key, tensors)
    return graph


def _key(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> str:
    """A hash of all that the graph is made from: settings, and the data that is seen.

    That includes the nodes of the split whose labels are seen: the models of
    cross-fitting differ in nothing else.
    """
    settings = canonical(config, variant_of(name), "statistics").to_dict()
    made_by = [NUMERICS, config.device, config.train.precision, config.seed]
    tensors = [dataset.x, dataset.edge_index]
    if make_embedder(name, config, workspace).uses_labels:
        shown = hide_labels(dataset.data(), split)
        tensors += [shown.y, split.train_mask, split.val_mask]
        made_by.append(split.index)
    settings.pop("dataset")
    return digest([made_by, settings, content_hash(tensors)])
