"""Every embedder, small enough to be fitted many times."""

from dataclasses import replace

import torch

from ecg_gnn.config import ModelConfig
from ecg_gnn.embed import (
    BGRLEmbedder,
    FeaturesEmbedder,
    IdentityControl,
    MLPEmbedder,
    OracleControl,
    PositionEmbedder,
    PrecomputedEmbedder,
    RandomControl,
    StructureEmbedder,
    TrainedModelEmbedder,
)
from ecg_gnn.train import LoopSettings
from toy_graphs import directed_edges, labelled_graph, random

NUM_NODES = 40
FEW_STEPS = LoopSettings(steps=6, lr=1e-2)
MLP = MLPEmbedder(hidden_channels=16, num_layers=1, train=FEW_STEPS)
BGRL = BGRLEmbedder(widths=(12, 8), predictor_channels=16, steps=6)
SMALL = ModelConfig(hidden=16, layers=1, drop_edge=0.0)
GNN = TrainedModelEmbedder(SMALL, train=FEW_STEPS)

EMBEDDERS = {
    "mlp": MLP,
    "bgrl": BGRL,
    "mlp-gnn": TrainedModelEmbedder(
        replace(SMALL, name="gat-sep", drop_edge=0.5), train=FEW_STEPS
    ),
    "tuned-gnn": TrainedModelEmbedder(
        replace(SMALL, backbone="tuned", layers=2), train=FEW_STEPS
    ),
    "features": FeaturesEmbedder(),
    "structure": StructureEmbedder(),
    "position": PositionEmbedder(),
    "precomputed": PrecomputedEmbedder(random(NUM_NODES, 5)),
    "identity": IdentityControl(),
    "random": RandomControl(),
    "oracle": OracleControl(),
}
HONEST = {name: e for name, e in EMBEDDERS.items() if not e.leaks}


def evolved_graph(num_classes=3):
    """A labelled graph that already has an evolved one beside its own."""
    data, split = labelled_graph(num_classes, NUM_NODES)
    data.ecg_edge_index = directed_edges(NUM_NODES, 120, seed=3)
    return data, split


def with_other_labels(data, nodes):
    """The same graph with other classes at the nodes of a mask."""
    other = data.clone()
    num_classes = int(data.y.max()) + 1
    other.y = torch.where(nodes, (data.y + 1) % num_classes, data.y)
    return other
