"""An embedder of your own: a class with four members, cached if it is a dataclass."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from ecg_gnn import (
    EmbedConfig,
    ModelConfig,
    RunConfig,
    TrainConfig,
    load_dataset,
    run,
)
from ecg_gnn.embed import SplitMasks, check_embedder


@dataclass(frozen=True)
class NeighbourhoodEmbedder:
    """A node's features beside the mean of its neighbours': no labels, no training."""

    uses_labels = False
    leaks = False

    def fit(self, data: Data, split: SplitMasks, *, seed: int):
        """Nothing to learn."""
        return self

    def embed(self, data: Data) -> Tensor:
        """``[x, mean of neighbours' x]``."""
        source, target = data.edge_index
        total = torch.zeros_like(data.x).index_add_(0, target, data.x[source])
        count = degree(target, data.num_nodes).clamp_min(1)
        return torch.cat([data.x, total / count[:, None]], dim=1)


dataset = load_dataset("minesweeper-gen:rows=30,cols=30")
check_embedder(NeighbourhoodEmbedder(), dataset.data(), dataset.split(0))
report = run(
    RunConfig(
        embed=EmbedConfig(names=("own:neighbourhood", "mlp")),
        model=ModelConfig(hidden=32, layers=2),
        train=TrainConfig(steps=40, lr=1e-2),
        splits=(0, 1, 2),
    ),
    dataset=dataset,
    embedders={"own:neighbourhood": NeighbourhoodEmbedder()},
)
for row in report.comparisons:
    print(
        f"{row.embedding:>18} − {row.against}: {100 * row.mean_difference:+.2f} "
        f"[{100 * row.ci_low:+.2f}, {100 * row.ci_high:+.2f}]"
    )
