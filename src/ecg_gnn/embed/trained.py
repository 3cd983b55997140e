"""Networks trained on the labels that are shown, and the paper's MLP→GNN."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn._version import MOVED, NUMERICS
from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import Fit, SplitMasks
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, Network, NetworkSpec, build_network, traits_of
from ecg_gnn.system.checks import InputError, default_metric
from ecg_gnn.system.seeds import seeded
from ecg_gnn.train import LoopSettings, Progress, Task, Training, train_together


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

    hidden_channels: int
    num_layers: int
    dropout: float
    train: LoopSettings
    device: str
    progress: Progress | None
    uses_labels = True
    leaks = False

    def fit(self, data: Data, split: SplitMasks, *, seed: int) -> Self:
        return self.fit_together([Fit(data, split, seed)])[0]

    def fit_together(self, fits: Sequence[Fit]) -> list[Self]:
        """One network for each, trained at the same time where a GPU has room."""
        trainings = self.trainings(fits)
        train_together(trainings, progress=self.progress)
        networks = [training.network for training in trainings]
        return [replace(self, network=each) for each in networks]  # type: ignore[type-var]

    def trainings(self, fits: Sequence[Fit]) -> list[Training]:
        """One training for each, before its first step."""
        raise NotImplementedError

    def embed(self, data: Data) -> Tensor:
        raise NotImplementedError

    def training(
        self,
        fit: Fit,
        graphs: Sequence[GraphInput],
        kind: type[Training] = Training,
        **network: Any,
    ) -> Training:
        """A training of a ``kind``, full-batch or by batches of rows.

        ``network`` are the fields of ``NetworkSpec`` that the data does not decide.
        """
        data, split, seed = fit
        if not split.train_mask.any() or not split.val_mask.any():
            wanted = "the split must have training and validation nodes"
            raise InputError(f"{wanted} (got none)")
        num_classes = int(data.y[split.train_mask | split.val_mask].max()) + 1
        spec = NetworkSpec(
            in_channels=data.x.size(1),
            hidden=self.hidden_channels,
            num_classes=num_classes,
            layers=self.num_layers,
            num_graphs=len(graphs),
            dropout=self.dropout,
            num_nodes=data.num_nodes,
            **network,
        )
        with seeded(seed, "initialisation"):
            built = build_network(spec)
        task = Task(
            x=data.x,
            y=data.y,
            graphs=graphs,
            train_index=split.train_mask.nonzero()[:, 0],
            val_index=split.val_mask.nonzero()[:, 0],
            test_index=None,
            metric=default_metric(num_classes),
        )
        place = torch.device(self.device)
        return kind(built.to(place), task.to(place), self.train, seed=seed)


@dataclass(frozen=True)
class TrainedModelEmbedder(TrainedOnLabels):
    """Last hidden representation of a GNN trained per split.

    It reads ``data.edge_index`` and, where there is one, ``data.ecg_edge_index``: on a
    graph already evolved by an MLP this is the paper's MLP→GNN. It deliberately breaks
    the rule that a weak classifier never has features, graph and labels at once.

    Fields are settings of the classifier, see ``ModelConfig`` and ``TrainConfig``.
    """

    model: str = "gcn"
    backbone: str = "benchmark"
    hidden_channels: int = 512
    num_layers: int = 2
    dropout: float = 0.2
    drop_edge: float = 0.0
    norm: str = "batch"
    evolved_layers: str = "all"
    options: tuple[tuple[str, Any], ...] = ()
    train: LoopSettings = field(default_factory=LoopSettings)
    device: str = "cpu"
    progress: Progress | None = field(default=None, compare=False, repr=False)
    network: Network | None = field(default=None, compare=False, repr=False)

    @property
    def numerics(self) -> int:
        """By which numerics it counts in a cache: those of its network."""
        return MOVED.get(self.model, NUMERICS)

    @classmethod
    def from_config(
        cls, config: RunConfig, progress: Progress | None
    ) -> "TrainedModelEmbedder":
        """As a run's settings have it; gates and labels are the classifier's alone."""
        model = config.model
        return cls(
            model=model.name,
            backbone=model.backbone,
            hidden_channels=known(model.hidden),
            num_layers=known(model.layers),
            dropout=model.dropout,
            drop_edge=known(model.drop_edge),
            norm=model.norm,
            evolved_layers=model.evolved_layers,
            options=tuple(model.options.items()),
            train=loop_settings(config, config.train.steps, config.train.lr),
            device=config.device,
            progress=progress,
        )

    def trainings(self, fits: Sequence[Fit]) -> list[Training]:
        """Over the graphs that ``data`` has."""
        names = "backbone", "model", "norm", "evolved_layers"
        network = {name: getattr(self, name) for name in names}
        network["options"] = dict(self.options)
        return [self.training(fit, self._graphs(fit.data), **network) for fit in fits]

    def embed(self, data: Data) -> Tensor:
        assert self.network is not None, "embed before fit"
        return represent(self.network, data.x, self._graphs(data))

    def _graphs(self, data: Data) -> list[GraphInput]:
        loops = traits_of(self.backbone, self.model).self_loops
        given = Adjacency.from_edge_index(
            data.edge_index, data.num_nodes, add_self_loops=loops
        )
        graphs = [GraphInput(given)]
        if "ecg_edge_index" in data:
            evolved = Adjacency.from_edge_index(data.ecg_edge_index, data.num_nodes)
            graphs.append(GraphInput(evolved, self.drop_edge))
        return graphs
