"""When the evolved graph helps: two networks on graphs of rising homophily."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from ecg_gnn import ECGConv, ModelConfig, RunConfig, TrainConfig, knn_graph, run
from ecg_gnn.data import GraphDataset, csbm
from ecg_gnn.embed import MLPEmbedder
from ecg_gnn.system.canvas import COLOURS, look
from ecg_gnn.train import LoopSettings

VARIANTS = {
    "baseline": "input graph",
    "ecg": "+ evolved graph (ECG)",
    "identity": "+ self-loops (control)",
}
NUM_CLASSES = 3
Scores = dict[str, list[float]]


def draw_sweep(
    kind: Any,
    homophilies: Sequence[float] = (0.02, 0.1, 0.2, 0.33, 0.45, 0.6, 0.75, 0.9),
    num_nodes: int = 900,
    num_splits: int = 5,
    steps: int = 100,
) -> Any:
    """Two networks on generated graphs whose features and sizes are all alike."""
    graphs = [
        csbm(nodes=num_nodes, classes=NUM_CLASSES, homophily=share, signal=1.5)
        for share in homophilies
    ]
    figure = kind(figsize=(6.6, 4.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    networks = {
        "Two GCN layers:\nself-loops help as much": two_layers,
        "The benchmark's network:\nthe three curves coincide": benchmark_network,
    }
    for axes, (title, network) in zip(panels, networks.items(), strict=True):
        found = [network(graph, num_splits, steps) for graph in graphs]
        _draw(axes, homophilies, found)
        axes.set_title(title, size=11)
    panels[0].set_ylabel("test accuracy (%)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    figure.suptitle("What helps is a second path to a node's own features", size=13)
    return figure


def benchmark_network(graph: GraphDataset, num_splits: int, steps: int) -> Scores:
    """Residual connections, norms, and a feed-forward part in every layer."""
    config = RunConfig(
        splits=tuple(range(num_splits)),
        device="cpu",
        model=ModelConfig(name="gcn", layers=2, hidden=64),
        train=TrainConfig(steps=steps),
    )
    report = run(config, dataset=graph)
    return {row.variant: list(row.per_split) for row in report.results}


def two_layers(graph: GraphDataset, num_splits: int, steps: int) -> Scores:
    """PyG's GCNConv twice, by itself and inside ECGConv."""
    scores: Scores = {name: [] for name in VARIANTS}
    for index in range(num_splits):
        embedder = MLPEmbedder(64, 2, train=LoopSettings(steps=steps, lr=3e-3))
        data, split = graph.data(), graph.split(index)
        z = embedder.fit(data, split, seed=index).embed(data)
        evolved = {
            "baseline": [],
            "ecg": [knn_graph(z, 10)],
            "identity": [knn_graph(z, 10, self_loops="only")],
        }
        for name, extra in evolved.items():
            edges = [graph.edge_index, *extra]
            scores[name].append(_train(graph, index, edges, steps))
    return scores


class TwoLayers(nn.Module):
    """No residual connection: a node sees itself as one among its neighbours."""

    def __init__(self, num_features: int, num_graphs: int) -> None:
        super().__init__()
        self.first = ECGConv(num_features, 64, GCNConv, num_evolved=num_graphs - 1)
        self.second = ECGConv(64, NUM_CLASSES, GCNConv, num_evolved=num_graphs - 1)

    def forward(self, x: Tensor, edges: Sequence[Tensor]) -> Tensor:
        """Logits, [N, C]."""
        h = F.dropout(F.relu(self.first(x, *edges)), 0.2, self.training)
        logits: Tensor = self.second(h, *edges)
        return logits


def _train(
    graph: GraphDataset, index: int, edges: Sequence[Tensor], steps: int
) -> float:
    """The test accuracy at the step that is best on validation."""
    torch.manual_seed(index)
    model = TwoLayers(graph.num_features, len(edges))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    split, best = graph.split(index), (-1.0, 0.0)
    for _ in range(steps):
        model.train()
        logits = model(graph.x, edges)[split.train_mask]
        optimizer.zero_grad()
        F.cross_entropy(logits, graph.y[split.train_mask]).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            right = (model(graph.x, edges).argmax(1) == graph.y).float()
        val, test = float(right[split.val_mask].mean()), right[split.test_mask].mean()
        best = max(best, (val, float(test)), key=lambda pair: pair[0])
    return best[1]


def _draw(axes: Axes, homophilies: Sequence[float], found: list[Scores]) -> None:
    axes.axvline(1 / NUM_CLASSES, color="0.7", ls=":", lw=1)
    axes.text(
        1 / NUM_CLASSES,
        1.0,
        " edges at random",
        color="0.4",
        fontsize=9,
        va="top",
        transform=axes.get_xaxis_transform(),
    )
    for name, label in VARIANTS.items():
        scores = 100 * np.array([row[name] for row in found])
        mean, spread = scores.mean(1), scores.std(1, ddof=1)
        axes.plot(homophilies, mean, label=label, **look(name))
        band = homophilies, mean - spread, mean + spread
        axes.fill_between(*band, color=COLOURS[name], alpha=0.12, lw=0)
    axes.set_xlabel("share of edges that join one class")
