"""The paper on one page: embed, evolve, classify, for one split of one dataset."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import (
    ConcatEmbedder,
    Embedder,
    EmbeddingCache,
    Fit,
    FitsTogether,
    embed_ahead,
    embed_nodes,
)
from ecg_gnn.embed.combine import concatenate
from ecg_gnn.embedders import Workspace, make_embedder, train_config
from ecg_gnn.evolve import knn_graph
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import GraphInput, Network, build_network, wants_self_loops
from ecg_gnn.seeds import derive_seed, seeded
from ecg_gnn.train import (
    Task,
    Training,
    TrainResult,
    train_together,
)

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
            with using_engine(config.engine):
                embed_ahead(part, fits, workspace.cache)


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
    """The evolved graph of one embedding on one split, as edges ``[2, E]``.

    Args:
        name: Which embedding or control.
        dataset: The graph.
        split: Whose labels may be seen.
        config: Resolved settings.
        workspace: Cache, progress and embedders of the caller's own.
    """
    workspace = workspace or Workspace()
    data = dataset.data()
    if name == "mlp-gnn":  # a model trained on the MLP's evolved graph embeds
        data.ecg_edge_index = evolve("mlp", dataset, split, config, workspace)
    embedder = make_embedder(name, config, workspace)
    with using_engine(config.engine):
        z = _embed(embedder, data, split, config.seed, workspace.cache)
    return knn_graph(
        z.to(config.device),
        known(config.evolve.k),
        metric=config.evolve.similarity,
        self_loops="only" if name == "identity" else config.evolve.self_loops,
        symmetric=config.evolve.symmetric,
        seed=derive_seed(config.seed, "ties", name, *_own_split(embedder, split)),
    ).cpu()


# --- Step 3 ---------------------------------------------------------------------------


def classify(
    dataset: GraphDataset,
    split: Split,
    evolved: Sequence[Tensor],
    config: RunConfig,
    workspace: Workspace | None = None,
    *,
    checkpoint: Path | None = None,
) -> tuple[Network, TrainResult]:
    """Train on the input graph and any evolved graphs in parallel.

    Args:
        dataset: The graph.
        split: Which nodes train, choose and test.
        evolved: Edges of each evolved graph; none is the baseline.
        config: Resolved settings.
        workspace: Progress.
        checkpoint: Where to keep the state, to resume after a kill.

    Returns:
        The network with the weights of the best validation step, and the numbers.
    """
    one = Classification(split, evolved, checkpoint)
    return classify_together(dataset, [one], config, workspace)[0]


class Classification(NamedTuple):
    """One training among several: see ``classify``."""

    split: Split
    evolved: Sequence[Tensor]
    checkpoint: Path | None = None


def classify_together(
    dataset: GraphDataset,
    jobs: Sequence[Classification],
    config: RunConfig,
    workspace: Workspace | None = None,
) -> list[tuple[Network, TrainResult]]:
    """Train for several splits in turns, at the same time where a GPU has room.

    Args:
        dataset: The graph.
        jobs: A split and its evolved graphs each.
        config: Resolved settings.
        workspace: Progress, of all together.
    """
    workspace = workspace or Workspace()
    with using_engine(config.engine):
        trainings = [_training(dataset, job, config) for job in jobs]
        results = train_together(trainings, progress=workspace.progress("training"))
    networks = [training.network for training in trainings]
    return list(zip(networks, results, strict=True))


def _training(
    dataset: GraphDataset, job: Classification, config: RunConfig
) -> Training:
    split, device = job.split, torch.device(config.device)
    seed = derive_seed(config.seed, "classify", split.index)
    task = Task(
        x=dataset.x,
        y=dataset.y,
        graphs=prepare_graphs(dataset.data(), job.evolved, config),
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=split.test_mask.nonzero()[:, 0],
        metric=dataset.metric,
    )
    return Training(
        _build(dataset, 1 + len(job.evolved), config, seed).to(device),
        task.to(device),
        train_config(config, config.train.steps, config.train.lr),
        seed=seed,
        checkpoint=job.checkpoint,
    )


def prepare_graphs(
    data: Data, evolved: Sequence[Tensor], config: RunConfig
) -> list[GraphInput]:
    """The input graph as the model wants it, then the evolved ones as they are."""
    loops = wants_self_loops(config.model.backbone, config.model.name)
    given = Adjacency.from_edge_index(
        data.edge_index, data.num_nodes, add_self_loops=loops
    )
    rate = known(config.model.drop_edge)
    return [GraphInput(given)] + [
        GraphInput(Adjacency.from_edge_index(edges, data.num_nodes), rate)
        for edges in evolved
    ]


def _build(
    dataset: GraphDataset, num_graphs: int, config: RunConfig, seed: int
) -> Network:
    model = config.model
    with seeded(seed, "initialisation"):
        return build_network(
            backbone=model.backbone,
            model=model.name,
            in_channels=dataset.num_features,
            hidden_channels=known(model.hidden),
            num_classes=dataset.num_classes,
            num_layers=known(model.layers),
            num_graphs=num_graphs,
            dropout=model.dropout,
            norm=model.norm,
            options=model.options,
            num_nodes=dataset.num_nodes,
        )
