"""Step 3 before its first step: graphs, network and task of one training."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn import nn
from ecg_gnn.config import RunConfig, known
from ecg_gnn.config.run_config import replaced
from ecg_gnn.data import GraphDataset, Split
from ecg_gnn.embed.mlp import loop_settings
from ecg_gnn.evolve import EvolvedGraph
from ecg_gnn.pipeline.workspace import ALONE, Workspace
from ecg_gnn.scale import Batching, BatchTraining
from ecg_gnn.system.machine import available_bytes, does_not_fit
from ecg_gnn.system.seeds import derive_seed, seeded
from ecg_gnn.train import LabelInput, Task, Training

BATCH_SIZE = 1024
"""Training nodes of a mini-batch where nobody says how many."""
_USABLE = 0.7  # of the memory that is free: allocators lose some


class Classification(NamedTuple):
    """One training among several."""

    split: Split  # which nodes train, choose and (if any) test
    evolved: Sequence[Tensor | EvolvedGraph]  # none is the baseline
    checkpoint: Path | None = None  # where to keep the state, to resume after a kill
    class_weights: Tensor | None = None  # how much each counts in the loss, [C]
    vectors: Tensor | None = None  # further features, [N, D]


def make_training(
    dataset: GraphDataset,
    job: Classification,
    config: RunConfig,
    workspace: Workspace = ALONE,
) -> Training:
    """A training before its first step; arguments as in ``classify``."""
    split, device = job.split, torch.device(config.device)
    seed = derive_seed(config.seed, "classify", split.index)
    # Batches are drawn on the host; full-batch steps want the graphs where they are.
    home = "cpu" if config.train.batch_size else config.device
    test, rate = split.test_mask.nonzero()[:, 0], config.train.label_input
    x = dataset.x
    if job.vectors is not None:
        x = torch.cat([x, job.vectors.to(x)], dim=1)
    task = Task(
        x=x,
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
        wider = x.size(1) - dataset.num_features
        network = network_of(config, dataset, 1 + len(job.evolved), wider).to(device)
    how = loop_settings(config, config.train.steps, config.train.lr)
    options: Any = {"seed": seed, "checkpoint": job.checkpoint}
    options["eval_every"] = config.train.eval_every
    if not config.train.batch_size:
        return Training(network, task.to(device), how, **options)
    assert isinstance(network, nn.LayeredNetwork)
    batching = Batching(
        size=config.train.batch_size,
        fanouts=config.train.fanouts(len(task.graphs)),
        workers=workspace.loader_workers,
    )
    return BatchTraining(network, task, how, batching, **options)


def step_advice(num_nodes: int, config: RunConfig) -> str:
    """What to say if a training does not fit; a step of a batch says it itself."""
    lower = f"lower --hidden (now {config.model.hidden})"
    if size := config.train.batch_size:
        lower = f"lower --batch-size (now {size}), --fanout or --hidden"
    elif nn.traits_of(config.model.backbone, config.model.name).one_hop:
        lower = "train by batches (--batch-size 1024 --fanout 10, or less)"
    device = torch.device(config.device)
    return does_not_fit(f"a step of {num_nodes} nodes", device, lower)


def full_step_bytes(
    num_nodes: int, num_edges: int, *, layers: int, width: int, features: int
) -> int:
    """Of a full-batch step on two graphs, give or take a factor of two."""
    per_layer = 17 * width  # states that layers read and make, and their gradients
    numbers = num_nodes * (features + 3 * width + layers * per_layer)
    return 4 * numbers + 96 * num_edges  # both orders, weights, scores of heads


def with_batches_if_large(config: RunConfig, dataset: GraphDataset) -> RunConfig:
    """The same settings, by mini-batches where full batches are unlikely to fit.

    Some networks have no mini-batches, and what was asked for is left as it is.
    """
    model, nodes = config.model, dataset.num_nodes
    has_batches = nn.traits_of(model.backbone, model.name).one_hop
    if config.train.batch_size or not has_batches:
        return config
    edges = dataset.edge_index.size(1) + nodes * known(config.evolve.k)
    size = {"width": known(model.hidden), "features": dataset.num_features}
    needed = full_step_bytes(nodes, edges, layers=known(model.layers), **size)
    device = torch.device(config.device)
    if needed <= _USABLE * available_bytes(device):
        return config
    warnings.warn(
        f"full batches of {nodes:,} nodes are unlikely to fit into the memory of "
        f"{device}: training uses mini-batches of {BATCH_SIZE} training nodes "
        "(--batch-size chooses their size)",
        stacklevel=2,
    )
    return replaced(config, {"train.batch_size": BATCH_SIZE})


def prepare_graphs(
    data: Data,
    evolved: Sequence[Tensor | EvolvedGraph],
    config: RunConfig,
    *,
    device: str = "cpu",
) -> list[nn.GraphInput]:
    """The input graph as the model wants it, then the evolved ones as they are."""
    parts = (EvolvedGraph.of(graph)[:2] for graph in evolved)
    placed = ((e.to(device), None if w is None else w.to(device)) for e, w in parts)
    edges = data.edge_index.to(device)
    return nn.graph_inputs(config.model, data.num_nodes, edges, placed)


def network_of(
    config: RunConfig, dataset: GraphDataset, num_graphs: int, wider: int = 0
) -> nn.Network:
    """The network that settings name, untrained, for so many features more.

    Labels that are input are columns, too.
    """
    columns = wider + (dataset.num_classes if config.train.label_input else 0)
    spec = nn.NetworkSpec(
        in_channels=dataset.num_features + columns,
        num_classes=dataset.num_classes,
        num_graphs=num_graphs,
        num_nodes=dataset.num_nodes,
        **config.model.network(),
    )
    return nn.build_network(spec)
