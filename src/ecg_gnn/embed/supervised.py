"""What the two supervised embedders share: a network trained on the shown labels."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import SplitMasks
from ecg_gnn.nn import GraphInput, Network, NetworkSpec, build_network
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.metric_names import default_metric
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, Task, Training


def num_shown_classes(data: Data, split: SplitMasks) -> int:
    """Classes among the labels an embedder may see."""
    if not split.train_mask.any() or not split.val_mask.any():
        raise InputError("the split must have training and validation nodes (got none)")
    return int(data.y[split.train_mask | split.val_mask].max()) + 1


def loop_settings(
    config: RunConfig, steps: int | None, lr: float | None
) -> LoopSettings:
    """A run's settings for one of its trainings."""
    return LoopSettings(
        steps=known(steps),
        lr=known(lr),
        weight_decay=config.train.weight_decay,
        precision=config.train.precision,
    )


def network_training(
    data: Data,
    split: SplitMasks,
    graphs: Sequence[GraphInput],
    config: LoopSettings,
    *,
    backbone: str,
    model: str,
    hidden_channels: int,
    num_layers: int,
    dropout: float,
    seed: int,
    device: str,
    norm: str = "batch",
    evolved_layers: str = "all",
    options: Mapping[str, Any] | None = None,
    kind: type[Training] = Training,
) -> Training:
    """A classifier to be trained on training labels, stopped on validation labels."""
    num_classes = num_shown_classes(data, split)
    with seeded(seed, "initialisation"):
        network = build_network(
            NetworkSpec(
                backbone=backbone,
                model=model,
                in_channels=data.x.size(1),
                hidden=hidden_channels,
                num_classes=num_classes,
                layers=num_layers,
                num_graphs=len(graphs),
                dropout=dropout,
                norm=norm,
                evolved_layers=evolved_layers,
                options=options or {},
                num_nodes=data.num_nodes,
            )
        )
    task = Task(
        x=data.x,
        y=data.y,
        graphs=graphs,
        train_index=split.train_mask.nonzero()[:, 0],
        val_index=split.val_mask.nonzero()[:, 0],
        test_index=None,
        metric=default_metric(num_classes),
    )
    place = torch.device(device)
    return kind(network.to(place), task.to(place), config, seed=seed)


@torch.no_grad()
def represent(network: Network, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
    """The network's last hidden representation, on the CPU."""
    device = next(network.parameters()).device
    states = network.represent(x.to(device), [graph.to(device) for graph in graphs])
    return states.float().cpu()
