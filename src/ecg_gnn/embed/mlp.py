"""The paper's first weak classifier: features and labels, no graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import EmbedRows, Fit, load_weights
from ecg_gnn.embed.trained import TrainedOnLabels, loop_settings, represent
from ecg_gnn.kernels.hashing import distinct_rows, first_of_group
from ecg_gnn.nn import Network, NetworkSpec, build_network
from ecg_gnn.train import (
    ROWS_AT_ONCE,
    LoopSettings,
    Progress,
    RowTraining,
    Training,
    no_graph,
    represent_rows,
)


@dataclass(frozen=True)
class MLPEmbedder(TrainedOnLabels):
    """The benchmark's ResNet, one training per split.

    Embeddings are the last hidden representation (after the output LayerNorm) at the
    step of the best validation score. With more than ``ROWS_AT_ONCE`` training and
    validation nodes a step is a batch of them.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> from ecg_gnn.train import LoopSettings
        >>> graph = load_dataset("csbm:nodes=60")
        >>> embedder = MLPEmbedder(16, 1, train=LoopSettings(steps=5))
        >>> embedder.fit(graph.data(), graph.split(0), seed=0).embed(graph.data()).shape
        torch.Size([60, 16])
    """

    hidden_channels: int = 512  # width of the network and of the embeddings
    num_layers: int = 2  # residual blocks
    dropout: float = 0.2
    train: LoopSettings = field(default_factory=LoopSettings)
    device: str = "cpu"
    rows_at_once: int = ROWS_AT_ONCE  # with more rows a step is a batch
    progress: Progress | None = field(default=None, compare=False, repr=False)
    network: Network | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_config(cls, config: RunConfig, progress: Progress | None) -> "MLPEmbedder":
        return cls(
            hidden_channels=known(config.embed.hidden),
            num_layers=known(config.embed.layers),
            dropout=known(config.embed.dropout),
            train=loop_settings(config, config.embed.steps, config.embed.lr),
            device=config.device,
            progress=progress,
        )

    def trainings(self, fits: Sequence[Fit]) -> list[Training]:
        """Of rows alone: neither graph nor test nodes are read."""
        moved: dict[int, Tensor] = {}  # features of many rows, once for all splits
        made = []
        for data, split, seed in fits:
            used = split.train_mask | split.val_mask
            num_used = int(used.sum())
            if num_used <= self.rows_at_once:
                masks = _Masks(split.train_mask[used], split.val_mask[used])
                fit = Fit(Data(x=data.x[used], y=data.y[used]), masks, seed)
                made.append(self.training(fit, [no_graph(num_used)], model="resnet"))
                continue
            place = data.x.data_ptr()
            if place not in moved:
                moved[place] = data.x.to(self.device)
            fit = Fit(Data(x=moved[place], y=data.y), split, seed)
            graphs = [no_graph(0)]  # batches bring their own
            made.append(self.training(fit, graphs, RowTraining, model="resnet"))
        return made

    def embed(self, data: Data) -> Tensor:
        """Representations; nodes with equal features get equal rows, to the bit."""
        assert self.network is not None, "embed before fit"
        # Each distinct row once: a matrix product may round equal rows differently at
        # its edges, and then nodes that are the same would not tie in step 2.
        if data.num_nodes <= self.rows_at_once:
            rows, inverse = torch.unique(data.x, dim=0, return_inverse=True)
            return represent(self.network, rows, [no_graph(rows.size(0))])[inverse]
        groups = distinct_rows(data.x)
        all_differ = int(groups.max()) + 1 == data.num_nodes
        rows = torch.arange(data.num_nodes) if all_differ else first_of_group(groups)
        states, begin = torch.empty(rows.numel(), self.hidden_channels), 0
        for block in represent_rows(self.network, data.x, rows):
            states[begin : begin + block.size(0)] = block
            begin += block.size(0)
        return states if all_differ else states[groups]

    def keep(self, x: Tensor) -> Mapping[str, Tensor]:
        assert self.network is not None, "keep before fit"
        return self.network.state_dict()

    @classmethod
    def restore(
        cls, tensors: Mapping[str, Tensor], config: RunConfig, in_channels: int
    ) -> EmbedRows:
        spec = NetworkSpec(
            model="resnet",
            in_channels=in_channels,
            hidden=known(config.embed.hidden),
            num_classes=max(2, tensors["output.weight"].size(0)),
            layers=known(config.embed.layers),
        )
        network = build_network(spec)
        load_weights(network, tensors)
        return partial(_embed_rows, network.double().eval())


@torch.no_grad()
def _embed_rows(network: Network, x: Tensor, edge_index: Tensor) -> Tensor:
    return network.represent(x.double(), [no_graph(x.size(0))])


class _Masks(NamedTuple):
    train_mask: Tensor
    val_mask: Tensor
