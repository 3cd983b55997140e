"""The paper's MLP→GNN: a network that is trained on the labels that are shown."""

from dataclasses import dataclass, field, replace

from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn._version import MOVED, NUMERICS
from ecg_gnn.config import ModelConfig, RunConfig
from ecg_gnn.embed.mlp import TrainedOnLabels, loop_settings, represent
from ecg_gnn.embed.protocol import SplitMasks
from ecg_gnn.nn import GraphInput, Network, graph_inputs
from ecg_gnn.train import LoopSettings, Progress


@dataclass(frozen=True)
class TrainedModelEmbedder(TrainedOnLabels):
    """Last hidden representation of a GNN trained per split.

    It reads ``data.edge_index`` and, where there is one, ``data.ecg_edge_index``: on a
    graph already evolved by an MLP this is the paper's MLP→GNN. It deliberately breaks
    the rule that a weak classifier never has features, graph and labels at once.

    ``model`` is resolved, see :class:`ecg_gnn.ModelConfig`.
    """

    model: ModelConfig
    train: LoopSettings = field(default_factory=LoopSettings)
    device: str = "cpu"
    progress: Progress | None = field(default=None, compare=False, repr=False)
    network: Network | None = field(default=None, compare=False, repr=False)

    @property
    def numerics(self) -> int:
        """By which numerics it counts in a cache: those of its network."""
        return MOVED.get(self.model.name, NUMERICS)

    @classmethod
    def from_config(
        cls, config: RunConfig, progress: Progress | None
    ) -> "TrainedModelEmbedder":
        """As a run's settings have it; gates and labels are the classifier's alone."""
        return cls(
            replace(config.model, gate="none"),
            train=loop_settings(config, config.train.steps, config.train.lr),
            device=config.device,
            progress=progress,
        )

    def fit(
        self, data: Data, split: SplitMasks, *, seed: int
    ) -> "TrainedModelEmbedder":
        """Train it on the graphs that ``data`` has."""
        masks, graphs = (split.train_mask, split.val_mask), self._graphs(data)
        network = self.model.network()
        return self.trained(data.x, data.y, masks, graphs, seed, **network)

    def embed(self, data: Data) -> Tensor:
        assert self.network is not None, "embed before fit"
        return represent(self.network, data.x, self._graphs(data))

    def _graphs(self, data: Data) -> list[GraphInput]:
        evolved = [(data.ecg_edge_index, None)] if "ecg_edge_index" in data else []
        return graph_inputs(self.model, data.num_nodes, data.edge_index, evolved)
