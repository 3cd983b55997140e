"""The paper's first weak classifier: features and labels, no graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.embed.protocol import Fit, SplitMasks
from ecg_gnn.embed.supervised import network_training, represent
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, Network
from ecg_gnn.train import Progress, TrainConfig, Training, train_together


@dataclass(frozen=True)
class MLPEmbedder:
    """The benchmark's ResNet, one training per split.

    Embeddings are the last hidden representation (after the output LayerNorm) at the
    step of the best validation score.

    Args:
        hidden_channels: Width of the network and of the embeddings.
        num_layers: Residual blocks.
        dropout: Dropout rate.
        train: Steps, learning rate and precision.
        device: Where to train.
        progress: Told how training goes.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> from ecg_gnn.train import TrainConfig
        >>> graph = load_dataset("csbm:nodes=60")
        >>> embedder = MLPEmbedder(16, 1, train=TrainConfig(steps=5))
        >>> embedder.fit(graph.data(), graph.split(0), seed=0).embed(graph.data()).shape
        torch.Size([60, 16])
    """

    hidden_channels: int = 512
    num_layers: int = 2
    dropout: float = 0.2
    train: TrainConfig = field(default_factory=TrainConfig)
    device: str = "cpu"
    progress: Progress | None = field(default=None, compare=False, repr=False)
    network: Network | None = field(default=None, compare=False, repr=False)

    uses_labels = True
    leaks = False

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> "MLPEmbedder":
        """Train on the training labels; neither graph nor test nodes are read."""
        return self.fit_together([Fit(data, split, seed)])[0]

    def fit_together(self, fits: Sequence[Fit]) -> list["MLPEmbedder"]:
        """One network for each, trained at the same time where a GPU has room."""
        trainings = [self._training(*fit) for fit in fits]
        train_together(trainings, progress=self.progress)
        return [replace(self, network=training.network) for training in trainings]

    def _training(self, data: Data, split: SplitMasks, seed: int) -> Training:
        used = split.train_mask | split.val_mask
        return network_training(
            Data(x=data.x[used], y=data.y[used]),
            _Masks(split.train_mask[used], split.val_mask[used]),
            [_no_graph(int(used.sum()))],
            self.train,
            backbone="benchmark",
            model="resnet",
            hidden_channels=self.hidden_channels,
            num_layers=self.num_layers,
            dropout=self.dropout,
            seed=seed,
            device=self.device,
        )

    def embed(self, data: Data) -> Tensor:
        """Representations; nodes with equal features get equal rows, to the bit."""
        assert self.network is not None, "embed before fit"
        # Each distinct row once: a matrix product may round equal rows differently at
        # its edges, and then nodes that are the same would not tie in step 2.
        rows, inverse = torch.unique(data.x, dim=0, return_inverse=True)
        return represent(self.network, rows, [_no_graph(rows.size(0))])[inverse]


class _Masks(NamedTuple):
    train_mask: Tensor
    val_mask: Tensor


def _no_graph(num_nodes: int) -> GraphInput:
    none = torch.empty(2, 0, dtype=torch.long)
    return GraphInput(Adjacency.from_edge_index(none, num_nodes))
