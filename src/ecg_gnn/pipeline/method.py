"""The paper on one page: embed the nodes, evolve the graph, classify on both.

For one split of one dataset. ``run``, ``fit``, the estimator, studies and ``advise``
all call these three functions; settings say which embedding, graph and network.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ecg_gnn.config import RunConfig, entry_of, is_control, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import (
    Embedder,
    PrecomputedEmbedder,
    embed_nodes,
)
from ecg_gnn.embed.combine import ConcatEmbedder, concatenate
from ecg_gnn.evolve import EvolvedGraph, similarity_weights
from ecg_gnn.evolve.backends import EXACT_NODES
from ecg_gnn.evolve.joint_search import knn_search_jointly
from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import Network
from ecg_gnn.pipeline.cross_fit import join_models, leave_out, one_model, searches
from ecg_gnn.pipeline.embedding_memory import explaining_embedding
from ecg_gnn.pipeline.graph_cache import kept_graph
from ecg_gnn.pipeline.training import Classification, explaining_memory, make_training
from ecg_gnn.pipeline.workspace import Workspace, make_embedder
from ecg_gnn.scale import first_goes_first
from ecg_gnn.system.seeds import derive_seed
from ecg_gnn.train import TrainResult, train_together

# --- Step 1: embed --------------------------------------------------------------------


def embed(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> Tensor:
    """One vector per node, as one model of the embedding gives it, ``[N, D]``.

    Args:
        name: Which embedding or control.
        dataset: The graph.
        split: Whose labels may be seen.
        config: Resolved settings.
        workspace: Cache, progress and embedders of the caller's own.
    """
    workspace, data = workspace or Workspace(), dataset.data()
    if (source := entry_of(name).evolved_from) is not None:
        graph = evolve(source, dataset, split, config, workspace)
        data.ecg_edge_index = graph.edge_index
    embedder = make_embedder(name, config, workspace)
    parts = embedder.parts if isinstance(embedder, ConcatEmbedder) else (embedder,)
    rows = []
    # Of several processes the first embeds; the others find it in the cache.
    with using_engine(config.engine), first_goes_first():
        for part in parts:
            seed = embedding_seed(part, split, config)
            with explaining_embedding(part, data):
                rows.append(
                    embed_nodes(part, data, split, seed=seed, cache=workspace.cache)
                )
    return concatenate(rows) if isinstance(embedder, ConcatEmbedder) else rows[0]


def is_cross_fitted(name: str, config: RunConfig, workspace: Workspace) -> bool:
    """Whether one model per fold embeds: what reads no labels needs none."""
    if not config.embed.cross_fit:
        return False
    embedder = make_embedder(name, config, workspace)
    return embedder.uses_labels and not embedder.leaks


def embedding_seed(embedder: Embedder, split: Split, config: RunConfig) -> int:
    """The seed of step 1."""
    return derive_seed(config.seed, "embed", *_own_split(embedder, split))


def _own_split(embedder: Embedder, split: Split) -> tuple[int, ...]:
    """The split as part of a seed; without labels one graph serves all splits."""
    return (split.index,) if embedder.uses_labels else ()


# --- Step 2: evolve -------------------------------------------------------------------


def evolve(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> EvolvedGraph:
    """The evolved graph of one embedding on one split, from the cache if it is there.

    Cross-fitted, every fold of nodes finds its neighbours among all nodes in the space
    of a model (for ``mlp-gnn``: of a chain of models) that was trained on no label of
    the fold. Spaces of different models are not comparable, and nothing is compared
    across them: a row is found in one space, or, of nodes that train no model and with
    ``cross_fit_models="all"``, each share of it in one.

    Where torch.distributed runs, all processes must call this: one embeds first, and
    they search together.

    Args:
        name: Which embedding or control.
        dataset: The graph.
        split: Whose labels may be seen.
        config: Resolved settings.
        workspace: Cache, progress and embedders of the caller's own.
    """
    workspace = workspace or Workspace()
    return kept_graph(
        name,
        dataset,
        split,
        config,
        workspace,
        make=lambda: _evolve(name, dataset, split, config, workspace),
    )


def _evolve(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> EvolvedGraph:
    if not is_cross_fitted(name, config, workspace):
        z = embed(name, dataset, split, config, workspace)
        return evolve_embedding(z, name, dataset, split, config, workspace)
    folds, left_out = leave_out(split, config)
    graphs_by_model = []
    for part in left_out:
        z = embed(name, dataset, part, one_model(config), workspace)
        graphs = [
            evolve_embedding(z, name, dataset, part, settings, workspace)
            for settings in searches(config, dataset.num_nodes)
        ]
        graphs_by_model.append(graphs)
    return join_models(graphs_by_model, folds, split, config)


def evolve_embedding(
    z: Tensor,
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> EvolvedGraph:
    """The evolved graph of what ``embed`` gave; for arguments see there."""
    workspace = workspace or Workspace()
    embedder = make_embedder(name, config, workspace)
    # Rows that stay in their file are searched there.
    file = embedder.file if isinstance(embedder, PrecomputedEmbedder) else None
    has_neighbours = entry_of(name).has_neighbours
    graph = knn_search_jointly(
        z if file is None else file.array(),
        known(config.evolve.k),
        metric=config.evolve.similarity,
        self_loops=config.evolve.self_loops if has_neighbours else "only",
        symmetric=config.evolve.symmetric,
        seed=derive_seed(config.seed, "ties", name, *_own_split(embedder, split)),
        knn=config.evolve.knn,
        device=config.device,
        progress=_search_progress(workspace, dataset.num_nodes),
    )
    edges = graph.edge_index
    # A control has no similarity to weigh by: its rows are all equal, or labels.
    if config.evolve.weights == "uniform" or is_control(name):
        return EvolvedGraph(edges.cpu(), None, graph.recall)
    device = torch.device("cpu" if file is not None else config.device)
    weights = similarity_weights(z.to(device), edges.to(device))
    return EvolvedGraph(edges.cpu(), weights.cpu(), graph.recall)


def _search_progress(
    workspace: Workspace, num_nodes: int
) -> Callable[[int, int], None] | None:
    """Shows a search that may take a while; it has no score."""
    tell = workspace.progress("kNN search") if num_nodes > EXACT_NODES else None
    if tell is None:
        return None
    return lambda done, total: tell(done, total, math.nan)


# --- Step 3: classify -----------------------------------------------------------------


def classify(
    dataset: GraphDataset,
    jobs: Sequence[Classification],
    config: RunConfig,
    workspace: Workspace | None = None,
) -> list[tuple[Network, TrainResult]]:
    """Train on the input graph and any evolved graphs in parallel, layer by layer.

    Several splits are trained in turns, at the same time where a GPU has room.

    Args:
        dataset: The graph.
        jobs: A split and its evolved graphs each; without any it is the baseline.
        config: Resolved settings.
        workspace: Progress, of all together.

    Returns:
        Each network with the weights of the best validation step, and its numbers.
    """
    workspace = workspace or Workspace()
    with using_engine(config.engine):
        trainings = [make_training(dataset, job, config, workspace) for job in jobs]
        first = trainings[0]
        with explaining_memory(first.network, first.task.graphs, config):
            results = train_together(trainings, progress=workspace.progress("training"))
    networks = [training.network for training in trainings]
    return list(zip(networks, results, strict=True))
