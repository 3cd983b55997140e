"""Steps 1 and 2 for one split of one dataset: embed the nodes, evolve the graph."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, is_control, known
from ecg_gnn.cross_fitting import join_models, leave_out, one_model, searches
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import (
    ConcatEmbedder,
    Embedder,
    EmbeddingCache,
    Fit,
    FitsTogether,
    PrecomputedEmbedder,
    embed_ahead,
    embed_nodes,
)
from ecg_gnn.embed.combine import concatenate
from ecg_gnn.embedders import Workspace, make_embedder
from ecg_gnn.embedding_memory import explaining_embedding
from ecg_gnn.evolve import EvolvedGraph, similarity_weights
from ecg_gnn.evolve.backends import EXACT_NODES
from ecg_gnn.evolve.joint_search import knn_search_jointly
from ecg_gnn.evolve.query import Embeddings
from ecg_gnn.kernels import using_engine
from ecg_gnn.scale import first_goes_first
from ecg_gnn.system.seeds import derive_seed

# --- Step 1 ---------------------------------------------------------------------------


def _embed(
    embedder: Embedder,
    data: Data,
    split: Split,
    seed: int,
    cache: EmbeddingCache | None,
) -> Tensor:
    if isinstance(embedder, ConcatEmbedder):  # its parts are those of other variants
        return concatenate(
            [_embed(part, data, split, seed, cache) for part in embedder.parts]
        )
    seed = _embedding_seed(embedder, split, seed)
    with explaining_embedding(embedder, data):
        return embed_nodes(embedder, data, split, seed=seed, cache=cache)


def embed_together(
    name: str,
    dataset: GraphDataset,
    splits: Sequence[Split],
    config: RunConfig,
    workspace: Workspace,
) -> None:
    """Train several splits' weak classifiers at the same time, into the cache.

    ``evolve`` finds them there; without a cache it trains them one by one.
    """
    if workspace.cache is None:
        return
    if _cross_fits(name, config, workspace):
        left_out = [leave_out(split, config)[1] for split in splits]
        for same_fold in zip(*left_out, strict=True):
            embed_together(name, dataset, same_fold, one_model(config), workspace)
        return
    data = {split.index: dataset.data() for split in splits}
    if name == "mlp-gnn":
        embed_together("mlp", dataset, splits, config, workspace)
        for split in splits:
            edges = evolve("mlp", dataset, split, config, workspace)
            data[split.index].ecg_edge_index = edges
    embedder = make_embedder(name, config, workspace)
    parts = embedder.parts if isinstance(embedder, ConcatEmbedder) else (embedder,)
    for part in parts:
        if isinstance(part, FitsTogether):
            fits = [
                Fit(data[s.index], s, _embedding_seed(part, s, config.seed))
                for s in splits
            ]
            with using_engine(config.engine), explaining_embedding(part, fits[0].data):
                embed_ahead(part, fits, workspace.cache)


def _cross_fits(name: str, config: RunConfig, workspace: Workspace) -> bool:
    """Whether one model per fold embeds: what reads no labels needs none."""
    if not config.embed.cross_fit:
        return False
    embedder = make_embedder(name, config, workspace)
    return embedder.uses_labels and not embedder.leaks


def _embedding_seed(embedder: Embedder, split: Split, seed: int) -> int:
    return derive_seed(seed, "embed", *_own_split(embedder, split))


def _own_split(embedder: Embedder, split: Split) -> tuple[int, ...]:
    """The split as part of a seed; without labels one graph serves all splits."""
    return (split.index,) if embedder.uses_labels else ()


# --- Step 2 ---------------------------------------------------------------------------


def evolve(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> Tensor:
    """The edges ``[2, E]`` of ``evolve_graph``."""
    return evolve_graph(name, dataset, split, config, workspace).edge_index


def evolve_graph(
    name: str,
    dataset: GraphDataset,
    split: Split,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> EvolvedGraph:
    """The evolved graph of one embedding on one split.

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
    if not _cross_fits(name, config, workspace):
        z = embed(name, dataset, split, config, workspace)
        return evolve_embedding(z, name, dataset, split, config, workspace)
    folds, left_out = leave_out(split, config)
    found = []
    for part in left_out:
        z = embed(name, dataset, part, one_model(config), workspace)
        graphs = [
            evolve_embedding(z, name, dataset, part, settings, workspace)
            for settings in searches(config, dataset.num_nodes)
        ]
        found.append(graphs)
    return join_models(found, folds, split, config)


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
    if name == "mlp-gnn":  # a model trained on the MLP's evolved graph embeds
        data.ecg_edge_index = evolve("mlp", dataset, split, config, workspace)
    embedder = make_embedder(name, config, workspace)
    # Of several processes the first embeds; the others find it in the cache.
    with using_engine(config.engine), first_goes_first():
        return _embed(embedder, data, split, config.seed, workspace.cache)


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
    mapped = _mapped(embedder)
    found = knn_search_jointly(
        z if mapped is None else mapped,
        known(config.evolve.k),
        metric=config.evolve.similarity,
        self_loops="only" if name == "identity" else config.evolve.self_loops,
        symmetric=config.evolve.symmetric,
        seed=derive_seed(config.seed, "ties", name, *_own_split(embedder, split)),
        knn=config.evolve.knn,
        device=config.device,
        progress=_search_progress(workspace, dataset.num_nodes),
    )
    edges = found.edge_index
    # A control has no similarity to weigh by: its rows are all equal, or labels.
    if config.evolve.weights == "uniform" or is_control(name):
        return EvolvedGraph(edges.cpu(), None, found.recall)
    where = torch.device("cpu" if mapped is not None else config.device)
    weights = similarity_weights(z.to(where), edges.to(where))
    return EvolvedGraph(edges.cpu(), weights.cpu(), found.recall)


def _mapped(embedder: Embedder) -> Embeddings | None:
    """Rows that stay in their file, which the search then keeps an eye on."""
    if isinstance(embedder, PrecomputedEmbedder) and embedder.file is not None:
        return embedder.file.array()
    return None


def _search_progress(
    workspace: Workspace, num_nodes: int
) -> Callable[[int, int], None] | None:
    """Who is told how a search goes that may take a while; it has no score."""
    tell = workspace.progress("kNN search") if num_nodes > EXACT_NODES else None
    if tell is None:
        return None
    return lambda done, total: tell(done, total, math.nan)
