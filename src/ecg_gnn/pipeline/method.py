"""The paper on one page: embed the nodes, evolve the graph, classify on both graphs.

Algorithm 1 of Deac and Tang, "Evolving Computation Graphs", for one split of a dataset:

1. ``embed``: a weak classifier γ gives every node a vector, ``H = γ(X, A)``, and is
   then frozen. It may read features and labels (``mlp``) or features and edges
   (``bgrl``).
2. ``evolve``: every node u gets as neighbours the k nodes v of the highest cosine
   ``h_u · h_v / (‖h_u‖ ‖h_v‖)``. These edges are the evolved graph.
3. ``classify``: each layer of a GNN passes messages on the input graph and on the
   evolved graph in parallel and adds what comes out, ``W h_input + U h_evolved``;
   evolved edges are dropped at random (``ecg_gnn.nn``).

``run``, ``fit``, the estimator, studies and ``advise`` all call these three functions;
settings say which embedding, graph and network.

Examples:
    >>> from ecg_gnn import RunConfig, load_dataset
    >>> from ecg_gnn.pipeline import resolve
    >>> dataset = load_dataset("csbm:nodes=60")
    >>> split = dataset.split(0)
    >>> config = resolve(RunConfig.of(k=3, steps=2), dataset)
    >>> embed("mlp", dataset, split, config).shape
    torch.Size([60, 64])
    >>> graph = evolve("mlp", dataset, split, config)  # embeds, too
    >>> graph.edge_index.shape
    torch.Size([2, 180])
    >>> job = Classification(split, [graph])
    >>> [(network, scores)] = classify(dataset, [job], config)
    >>> 0 <= scores.test <= 1
    True
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ecg_gnn.config import RunConfig, entry_of, is_control, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import embed_nodes
from ecg_gnn.embed.plain import concatenate
from ecg_gnn.evolve import EvolvedGraph, knn_search, similarity_weights
from ecg_gnn.evolve.backends import EXACT_NODES
from ecg_gnn.kernels import using_engine
from ecg_gnn.nn import Network
from ecg_gnn.pipeline import cross_fit
from ecg_gnn.pipeline.classification import Classification, make_training, step_advice
from ecg_gnn.pipeline.workspace import (
    ALONE,
    Workspace,
    embedding_advice,
    is_cross_fitted,
    kept_graph,
    make_embedder,
    step_seed,
)
from ecg_gnn.system.machine import explaining
from ecg_gnn.train import TrainResult, train_together

# --- Step 1: embed --------------------------------------------------------------------


def embed(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> Tensor:
    """One vector per node, ``[N, D]``, from one model, whose weights stay as they are.

    ``name`` is the embedding or control, ``split`` says whose labels may be seen, and
    ``config`` is resolved.
    """
    if parts := entry_of(name).parts:
        rows = [embed(part, dataset, split, config, workspace) for part in parts]
        return concatenate(rows)
    data = dataset.data()
    if (source := entry_of(name).evolved_from) is not None:  # the paper's MLP→GNN
        graph = evolve(source, dataset, split, config, workspace)
        data.ecg_edge_index = graph.edge_index
    embedder = make_embedder(name, config, workspace)
    seed = step_seed(name, split, config, workspace, "embed")
    advice = embedding_advice, name, dataset, config
    with using_engine(config.engine), explaining(*advice):
        return embed_nodes(embedder, data, split, seed=seed, cache=workspace.cache)


# --- Step 2: evolve -------------------------------------------------------------------


def evolve(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> EvolvedGraph:
    """Steps 1 and 2: the graph of nearest neighbours, from the cache if it is there.

    Arguments are those of ``embed``.
    """

    def make() -> EvolvedGraph:
        folds = config.embed.cross_fit  # none, as in the paper
        if folds and is_cross_fitted(name, config, workspace):
            return _evolve_by_folds(name, dataset, split, config, workspace)
        z = embed(name, dataset, split, config, workspace)
        return evolve_embedding(z, name, dataset, split, config, workspace)

    return kept_graph(name, dataset, split, config, workspace, make=make)


def evolve_embedding(
    z: Tensor,
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> EvolvedGraph:
    """Step 2 alone: connect every row of ``z`` with the k rows nearest to it."""
    long = dataset.num_nodes > EXACT_NODES
    tell = workspace.progress("kNN search") if long else None
    graph = knn_search(
        z,
        known(config.evolve.k),
        metric=config.evolve.similarity,
        self_loops="only" if name == "identity" else config.evolve.self_loops,
        symmetric=config.evolve.symmetric,
        seed=step_seed(name, split, config, workspace, "ties", name),
        knn=config.evolve.knn,
        device=config.device,
        progress=None if tell is None else (lambda n, total: tell(n, total, math.nan)),
    )
    edges = graph.edge_index
    # A control has no similarity to weigh by: its rows are all equal, or labels.
    if config.evolve.weights == "uniform" or is_control(name):
        return EvolvedGraph(edges.cpu(), None, graph.recall)
    weights = similarity_weights(z.to(config.device), edges.to(config.device))
    return EvolvedGraph(edges.cpu(), weights.cpu(), graph.recall)


def embed_as_input(
    names: Sequence[str],
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> Tensor | None:
    """Vectors of these embeddings as further features, ``[N, D]``: step 2 left out.

    This is what an evolved graph is compared with, to tell what its edges add. Where
    the graph would be cross-fitted, so are they.
    """
    columns = []
    for name in names:
        if is_cross_fitted(name, config, workspace):
            folds, left_out = cross_fit.leave_out(split, config)
            alone = cross_fit.one_model(config)
            of_models = [embed(name, dataset, p, alone, workspace) for p in left_out]
            z = cross_fit.join_vectors(of_models, folds)
        else:
            z = embed(name, dataset, split, config, workspace)
        columns.append(z.float().cpu() / z.std().clamp_min(1e-6).cpu())
    return torch.cat(columns, dim=1) if columns else None


def _evolve_by_folds(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace,
) -> EvolvedGraph:
    """Past the paper: a node's neighbours come from a model that never saw its label.

    Nodes are dealt into folds, and one model (for ``mlp-gnn``: a chain of models) is
    trained without the labels of each. Vectors of different models are never compared.
    """
    folds, left_out = cross_fit.leave_out(split, config)
    graphs_by_model = []
    for part in left_out:
        z = embed(name, dataset, part, cross_fit.one_model(config), workspace)
        graphs = [
            evolve_embedding(z, name, dataset, part, settings, workspace)
            for settings in cross_fit.searches(config, dataset.num_nodes)
        ]
        graphs_by_model.append(graphs)
    return cross_fit.join_models(graphs_by_model, folds, split, config)


# --- Step 3: classify -----------------------------------------------------------------


def classify(
    dataset: GraphDataset,
    jobs: Sequence[Classification],
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> list[tuple[Network, TrainResult]]:
    """Train on the input graph and any evolved graphs in parallel, layer by layer.

    A job is a split and its evolved graphs; without any it is the baseline. Several are
    trained in turns, at the same time where a GPU has room. Each gives its network with
    the weights of the best validation step, and its scores.
    """
    advice = step_advice, dataset.num_nodes, config
    with using_engine(config.engine), explaining(*advice):
        trainings = [make_training(dataset, job, config, workspace) for job in jobs]
        results = train_together(trainings, progress=workspace.progress("training"))
    networks = [training.network for training in trainings]
    return list(zip(networks, results, strict=True))
