"""Draws the guide's pictures: ``python docs/tools/pictures.py [FOLDER]``.

Everything in them is computed here, by the package, on generated graphs. The sweep
takes six minutes on one core, the rest seconds.
"""

import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from sklearn.decomposition import PCA
from sweep import draw_sweep
from torch import Tensor

from ecg_gnn import knn_graph
from ecg_gnn.data import GraphDataset, csbm
from ecg_gnn.embed import MLPEmbedder
from ecg_gnn.evolve import edge_homophily
from ecg_gnn.system.canvas import PALETTE, draw
from ecg_gnn.train import LoopSettings

IMAGES = Path(__file__).parents[1] / "images"
CLASS_COLOURS = np.array(PALETTE[:3])


def three_steps(kind: Any) -> Any:
    """A small heterophilous graph, its embedding, and the graph evolved from it."""
    graph = csbm(nodes=90, classes=3, degree=4, homophily=0.08, signal=2.6, seed=3)
    embedder = MLPEmbedder(32, 1, train=LoopSettings(steps=60, lr=1e-2))
    z = embedder.fit(graph.data(), graph.split(0), seed=0).embed(graph.data())
    evolved = knn_graph(z, 3)
    flat = PCA(2).fit_transform(z.numpy())
    drawn = nx.Graph(graph.edge_index.t().tolist())
    place = nx.spring_layout(drawn, seed=1, k=0.3)
    given = np.array([place[node] for node in range(graph.num_nodes)])

    figure = kind(figsize=(8, 4), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    _draw_graph(left, graph, given, graph.edge_index)
    before, after = (
        f"{edge_homophily(edges, graph.y):.0%}" for edges in (graph.edge_index, evolved)
    )
    left.set_title(f"Input graph: {before}\nof edges stay\nin one class", size=14)
    _draw_graph(middle, graph, flat, None)
    middle.set_title("Step 1: a weak\nclassifier embeds\nthe nodes", size=14)
    _draw_graph(right, graph, flat, evolved)
    right.set_title(f"Step 2: join the\nnearest three:\n{after} stay in one", size=14)
    figure.suptitle("Evolving makes neighbours alike", size=16)
    return figure


def _draw_graph(
    axes: Axes, graph: GraphDataset, place: Any, edges: Tensor | None
) -> None:
    """Nodes in the colours of their classes; so are edges within a class."""
    y = graph.y.numpy()
    if edges is not None:
        source, target = edges.numpy()
        same = y[source] == y[target]
        colours = np.where(same, CLASS_COLOURS[y[source]], "#BBBBBB")
        ends = np.stack([place[source], place[target]], axis=1)
        axes.add_collection(
            LineCollection(list(ends), colors=list(colours), linewidths=0.9, alpha=0.7)
        )
    axes.scatter(
        *place.T, c=CLASS_COLOURS[y], s=28, edgecolor="white", lw=0.6, zorder=3
    )
    axes.set_axis_off()


def parallel(kind: Any) -> Any:
    """Step 3: the same kind of layer on both graphs, projected together."""
    figure = kind(figsize=(7, 2.6), layout="constrained")
    figure.suptitle("Step 3: each layer reads both graphs", size=15)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(0, 10), ylim=(0, 3.2))
    places = {
        "x": (0.8, 1.6, "states of\nthe nodes", "#EEEEEE"),
        "given": (3.6, 2.6, "layer, input graph", "#CCE1F0"),
        "evolved": (3.6, 0.6, "layer, evolved graph", "#F9DCC4"),
        "join": (6.6, 1.6, "W · input\n+ U · evolved", "#EEEEEE"),
        "out": (9.1, 1.6, "new\nstates", "#EEEEEE"),
    }
    style = {"boxstyle": "round,pad=0.5", "edgecolor": "#555555"}
    boxes = {
        name: axes.text(
            *(x, y, text),
            **{"ha": "center", "va": "center", "fontsize": 12},
            bbox={**style, "facecolor": colour},
        )
        for name, (x, y, text, colour) in places.items()
    }
    arrows = ("x given", "x evolved", "given join", "evolved join", "join out")
    for start, end in map(str.split, arrows):
        ends = {"patchA": boxes[start].get_bbox_patch()}
        ends["patchB"] = boxes[end].get_bbox_patch()
        line = {"arrowstyle": "->", "color": "#555555", "shrinkA": 3, "shrinkB": 3}
        axes.annotate("", places[end][:2], places[start][:2], arrowprops=line | ends)
    return figure


PICTURES = {
    "three-steps": three_steps,
    "parallel": parallel,
    "homophily-sweep": draw_sweep,
}


def main(folder: Path) -> None:
    """Draw all of them."""
    for name, paint in PICTURES.items():
        draw(folder / f"{name}.png", paint)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
