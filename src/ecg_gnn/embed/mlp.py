"""The paper's first weak classifier: features and labels, no graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import EmbedRows, SplitMasks, load_weights
from ecg_gnn.kernels.hashing import distinct_rows, first_of_group
from ecg_gnn.nn import GraphInput, Network, NetworkSpec, build_network
from ecg_gnn.system.checks import InputError, default_metric
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import (
    ROWS_AT_ONCE,
    LoopSettings,
    Progress,
    RowTraining,
    Task,
    Training,
    no_graph,
    represent_rows,
    train_together,
)


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


@torch.no_grad()
def represent(network: Network, x: Tensor, graphs: Sequence[GraphInput]) -> Tensor:
    """The network's last hidden representation, on the CPU."""
    device = next(network.parameters()).device
    states = network.represent(x.to(device), [graph.to(device) for graph in graphs])
    return states.float().cpu()


class TrainedOnLabels:
    """What embedders share that are networks, trained once per split."""

    train: LoopSettings
    device: str
    progress: Progress | None
    uses_labels = True
    leaks = False

    def trained(
        self,
        x: Tensor,
        y: Tensor,
        masks: tuple[Tensor, Tensor],
        graphs: Sequence[GraphInput],
        seed: int,
        kind: type[Training] = Training,
        **network: Any,
    ) -> Self:
        """The same embedder with its network, trained full-batch or by batches of rows.

        ``masks`` say who trains and who chooses the best step.
        ``network`` are the fields of ``NetworkSpec`` that the data does not decide.
        """
        train, val = masks
        if not train.any() or not val.any():
            wanted = "the split must have training and validation nodes"
            raise InputError(f"{wanted} (got none)")
        num_classes = int(y[train | val].max()) + 1
        spec = NetworkSpec(
            in_channels=x.size(1),
            num_classes=num_classes,
            num_graphs=len(graphs),
            num_nodes=x.size(0),
            **network,
        )
        with seeded(seed, "initialisation"):
            built = build_network(spec)
        task = Task(
            x=x,
            y=y,
            graphs=graphs,
            train_index=train.nonzero()[:, 0],
            val_index=val.nonzero()[:, 0],
            test_index=None,
            metric=default_metric(num_classes),
        )
        place = torch.device(self.device)
        training = kind(built.to(place), task.to(place), self.train, seed=seed)
        train_together([training], progress=self.progress)
        return replace(self, network=training.network)  # type: ignore[type-var]


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

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> "MLPEmbedder":
        """Train it on rows alone: neither graph nor test nodes are read."""
        x, y, train, val = data.x, data.y, split.train_mask, split.val_mask
        used = train | val
        kind: type[Training] = RowTraining
        graphs = [no_graph(0)]  # batches bring their own
        if (num_used := int(used.sum())) <= self.rows_at_once:
            kind, graphs = Training, [no_graph(num_used)]
            x, y, train, val = (each[used] for each in (x, y, train, val))
        network: dict[str, Any] = {"model": "resnet", "hidden": self.hidden_channels}
        network |= {"layers": self.num_layers, "dropout": self.dropout}
        return self.trained(x, y, (train, val), graphs, seed, kind, **network)

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
