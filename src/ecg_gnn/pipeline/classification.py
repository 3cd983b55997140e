"""Step 3 before its first step: graphs, network and task of one training."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed.trained import loop_settings
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import (
    GraphInput,
    LayeredNetwork,
    Network,
    NetworkSpec,
    build_network,
    wants_self_loops,
)
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.scale import Advice, Batching, BatchTraining, Step, explaining
from ecg_gnn.system.seeds import derive_seed, seeded
from ecg_gnn.train import LabelInput, Task, Training


class Classification(NamedTuple):
    """One training among several.

    Attributes:
        split: Which nodes train, choose and (if any) test.
        evolved: Each evolved graph, or its edges; none is the baseline.
        checkpoint: Where to keep the state, to resume after a kill.
        class_weights: How much each class counts in the loss, ``[C]``.
    """

    split: Split
    evolved: Sequence[Tensor | EvolvedGraph]
    checkpoint: Path | None = None
    class_weights: Tensor | None = None


def make_training(
    dataset: GraphDataset,
    job: Classification,
    config: RunConfig,
    workspace: Workspace | None = None,
) -> Training:
    """A training before its first step; arguments as in ``classify``."""
    workspace = workspace or Workspace()
    split, device = job.split, torch.device(config.device)
    seed = derive_seed(config.seed, "classify", split.index)
    # Batches are drawn on the host; full-batch steps want the graphs where they are.
    home = "cpu" if config.train.batch_size else config.device
    test, rate = split.test_mask.nonzero()[:, 0], config.train.label_input
    task = Task(
        x=dataset.x,
        y=dataset.y,
        graphs=prepare_graphs(dataset.data(), job.evolved, config, device=home),
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=test if test.numel() else None,
        metric=dataset.metric,
        class_weights=job.class_weights,
        labels=LabelInput(rate=rate, num_classes=dataset.num_classes) if rate else None,
    )
    with seeded(seed, "initialisation"):
        network = network_of(config, dataset, 1 + len(job.evolved)).to(device)
    how = loop_settings(config, config.train.steps, config.train.lr)
    if not config.train.batch_size:
        with explaining_memory(network, task.graphs, config):
            return Training(
                network,
                task.to(device),
                how,
                seed=seed,
                checkpoint=job.checkpoint,
                eval_every=config.train.eval_every,
            )
    assert isinstance(network, LayeredNetwork)
    return BatchTraining(
        network,
        task,
        how,
        Batching(
            size=config.train.batch_size,
            fanouts=config.train.fanouts(len(task.graphs)),
            workers=workspace.loader_workers,
        ),
        seed=seed,
        file=dataset.features_file,
        data_id=dataset.sha256,
        checkpoint=job.checkpoint,
        eval_every=config.train.eval_every,
    )


def explaining_memory(
    network: Network, graphs: Sequence[GraphInput], config: RunConfig
) -> AbstractContextManager[None]:
    """Say what to do if a full-batch step does not fit; a batch says it itself."""
    if config.train.batch_size:
        return nullcontext()
    step = Step.of_graphs(graphs, known(config.model.layers))
    device = next(network.parameters()).device
    return explaining(Advice(step=step, network=network, device=device))


def prepare_graphs(
    data: Data,
    evolved: Sequence[Tensor | EvolvedGraph],
    config: RunConfig,
    *,
    device: str = "cpu",
) -> list[GraphInput]:
    """The input graph as the model wants it, then the evolved ones as they are."""
    loops = wants_self_loops(config.model.backbone, config.model.name)
    given = Adjacency.from_edge_index(
        data.edge_index.to(device), data.num_nodes, add_self_loops=loops
    )
    rate = known(config.model.drop_edge)
    return [GraphInput(given)] + [
        GraphInput(_adjacency(graph, data.num_nodes, device), rate) for graph in evolved
    ]


def _adjacency(graph: Tensor | EvolvedGraph, num_nodes: int, device: str) -> Adjacency:
    edges, weights, _ = EvolvedGraph.of(graph)
    if weights is None:
        return Adjacency.from_edge_index(edges.to(device), num_nodes)
    return Adjacency.from_weighted_edges(
        edges.to(device), weights.to(device), num_nodes
    )


def network_of(config: RunConfig, dataset: GraphDataset, num_graphs: int) -> Network:
    """The network that settings name, untrained; labels that are input are columns."""
    model = config.model
    columns = dataset.num_classes if config.train.label_input else 0
    return build_network(
        NetworkSpec(
            backbone=model.backbone,
            model=model.name,
            in_channels=dataset.num_features + columns,
            hidden=known(model.hidden),
            num_classes=dataset.num_classes,
            layers=known(model.layers),
            num_graphs=num_graphs,
            dropout=model.dropout,
            norm=model.norm,
            gate=model.gate,
            evolved_layers=model.evolved_layers,
            options=model.options,
            num_nodes=dataset.num_nodes,
        )
    )
