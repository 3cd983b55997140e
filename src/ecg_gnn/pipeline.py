"""The paper on one page: embed, evolve, classify, for one split of one dataset."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.checks import check_choice
from ecg_gnn.config import OWN_PREFIX, RunConfig, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed import (
    BGRLEmbedder,
    ConcatEmbedder,
    Embedder,
    EmbeddingCache,
    FeaturesEmbedder,
    IdentityControl,
    MLPEmbedder,
    OracleControl,
    PrecomputedEmbedder,
    RandomControl,
    TrainedModelEmbedder,
    embed_nodes,
)
from ecg_gnn.embed.combine import concatenate
from ecg_gnn.evolve import knn_graph
from ecg_gnn.kernels import Adjacency, using_engine
from ecg_gnn.nn import GraphInput, Network, build_network, wants_self_loops
from ecg_gnn.seeds import derive_seed, seeded
from ecg_gnn.train import Task, TrainConfig, TrainResult, train
from ecg_gnn.train.loop import Progress

ProgressFor = Callable[[str], Progress | None]
"""Gives the progress callback for a named piece of work."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """What a run brings along.

    Attributes:
        cache: Where embeddings are kept.
        progress: Who is told how it goes.
        embedders: Embedders of the caller's own, by the names ``own:...``.
    """

    cache: EmbeddingCache | None = None
    progress: ProgressFor = lambda _name: None
    embedders: Mapping[str, Embedder] = field(default_factory=dict)


# --- Step 1 ---------------------------------------------------------------------------


def make_embedder(name: str, config: RunConfig, workspace: Workspace) -> Embedder:
    """Build a weak classifier or control from its name and a resolved config."""
    if name in workspace.embedders:
        return workspace.embedders[name]
    if name.startswith(OWN_PREFIX):
        check_choice("embedding", name, workspace.embedders)
    if name.startswith("precomputed:"):
        return PrecomputedEmbedder.from_file(name.removeprefix("precomputed:"))
    builders: dict[str, Callable[[], Embedder]] = {
        "mlp": lambda: _mlp(config, workspace),
        "bgrl": lambda: _bgrl(config, workspace),
        "mlp+bgrl": lambda: ConcatEmbedder(
            (_mlp(config, workspace), _bgrl(config, workspace))
        ),
        "mlp-gnn": lambda: _trained_model(config, workspace),
        "features": FeaturesEmbedder,
        "identity": IdentityControl,
        "random": RandomControl,
        "oracle": OracleControl,
    }
    return builders[name]()


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
    seed = derive_seed(seed, "embed", *_own_split(embedder, split))
    return embed_nodes(embedder, data, split, seed=seed, cache=cache)


def _own_split(embedder: Embedder, split: Split) -> tuple[int, ...]:
    """The split as part of a seed; without labels one graph serves all splits."""
    return (split.index,) if embedder.uses_labels else ()


def _mlp(config: RunConfig, workspace: Workspace) -> MLPEmbedder:
    return MLPEmbedder(
        hidden_channels=known(config.embed.hidden),
        num_layers=known(config.embed.layers),
        dropout=config.model.dropout,
        train=_train_config(config, config.embed.steps, config.embed.lr),
        device=config.device,
        progress=workspace.progress("MLP embedding"),
    )


def _bgrl(config: RunConfig, workspace: Workspace) -> BGRLEmbedder:
    return BGRLEmbedder(
        widths=(known(config.embed.hidden), known(config.embed.hidden) // 2),
        steps=known(config.embed.steps),
        lr=config.embed.bgrl_lr,
        precision=config.train.precision,
        device=config.device,
        progress=workspace.progress("BGRL embedding"),
    )


def _trained_model(config: RunConfig, workspace: Workspace) -> TrainedModelEmbedder:
    model = config.model
    return TrainedModelEmbedder(
        model=model.name,
        backbone=model.backbone,
        hidden_channels=known(model.hidden),
        num_layers=known(model.layers),
        dropout=model.dropout,
        drop_edge=known(model.drop_edge),
        norm=model.norm,
        train=_train_config(config, config.train.steps, config.train.lr),
        device=config.device,
        progress=workspace.progress("MLP→GNN embedding"),
    )


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
    workspace = workspace or Workspace()
    seed = derive_seed(config.seed, "classify", split.index)
    network = _build(dataset, 1 + len(evolved), config, seed).to(config.device)
    task = Task(
        x=dataset.x,
        y=dataset.y,
        graphs=prepare_graphs(dataset.data(), evolved, config),
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=split.test_mask.nonzero()[:, 0],
        metric=dataset.metric,
    )
    with using_engine(config.engine):
        result = train(
            network,
            task.to(torch.device(config.device)),
            _train_config(config, config.train.steps, config.train.lr),
            seed=seed,
            checkpoint=checkpoint,
            progress=workspace.progress("training"),
        )
    return network, result


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
        )


def _train_config(
    config: RunConfig, steps: int | None, lr: float | None
) -> TrainConfig:
    return TrainConfig(
        steps=known(steps),
        lr=known(lr),
        weight_decay=config.train.weight_decay,
        precision=config.train.precision,
    )
