"""Embeddings of a trained model (the paper's MLP→GNN)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import RunConfig, known
from ecg_gnn.embed.protocol import Fit, SplitMasks
from ecg_gnn.embed.supervised import loop_settings, network_training, represent
from ecg_gnn.kernels import Adjacency
from ecg_gnn.nn import GraphInput, Network, wants_self_loops
from ecg_gnn.train import LoopSettings, Progress, Training, train_together


@dataclass(frozen=True)
class TrainedModelEmbedder:
    """Last hidden representation of a GNN trained per split.

    It reads ``data.edge_index`` and, where there is one, ``data.ecg_edge_index``: on a
    graph already evolved by an MLP this is the paper's MLP→GNN. It deliberately breaks
    the rule that a weak classifier never has features, graph and labels at once.

    Args:
        model: Message-passing module.
        backbone: ``benchmark`` or ``tuned``.
        hidden_channels: Width of the network and of the embeddings.
        num_layers: Number of layers.
        dropout: Dropout rate.
        drop_edge: DropEdge rate on the evolved graph.
        norm: Normalisation of the tuned backbone.
        evolved_layers: ``all``, or ``last``: see ``build_network``.
        options: What only this model has, as pairs.
        train: Steps, learning rate and precision.
        device: Where to train.
        progress: Told how training goes.
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

    uses_labels = True
    leaks = False

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

    def fit(
        self, data: Data, split: SplitMasks, *, seed: int
    ) -> "TrainedModelEmbedder":
        """Train on the training labels, over the graphs that ``data`` has."""
        return self.fit_together([Fit(data, split, seed)])[0]

    def fit_together(self, fits: Sequence[Fit]) -> list["TrainedModelEmbedder"]:
        """One network for each, trained at the same time where a GPU has room."""
        trainings = [self._training(*fit) for fit in fits]
        train_together(trainings, progress=self.progress)
        return [replace(self, network=training.network) for training in trainings]

    def _training(self, data: Data, split: SplitMasks, seed: int) -> Training:
        return network_training(
            data,
            split,
            self._graphs(data),
            self.train,
            backbone=self.backbone,
            model=self.model,
            hidden_channels=self.hidden_channels,
            num_layers=self.num_layers,
            dropout=self.dropout,
            seed=seed,
            device=self.device,
            norm=self.norm,
            evolved_layers=self.evolved_layers,
            options=dict(self.options),
        )

    def embed(self, data: Data) -> Tensor:
        """Representations of all nodes."""
        assert self.network is not None, "embed before fit"
        return represent(self.network, data.x, self._graphs(data))

    def _graphs(self, data: Data) -> list[GraphInput]:
        loops = wants_self_loops(self.backbone, self.model)
        given = Adjacency.from_edge_index(
            data.edge_index, data.num_nodes, add_self_loops=loops
        )
        graphs = [GraphInput(given)]
        if "ecg_edge_index" in data:
            evolved = Adjacency.from_edge_index(data.ecg_edge_index, data.num_nodes)
            graphs.append(GraphInput(evolved, self.drop_edge))
        return graphs
