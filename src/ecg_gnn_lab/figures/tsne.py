"""The paper's t-SNE pair: one random GCN layer over G and over G_ECG, by label.

Nothing is trained for the picture: the layer's weights are random and the same on both
sides, so that whatever tells the classes apart comes from the edges.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from torch import Tensor
from torch_geometric.nn import GCNConv

from ecg_gnn.config import RunConfig
from ecg_gnn.config.identity import run_tags, tagged
from ecg_gnn.data import GraphDataset, load_dataset
from ecg_gnn.pipeline import evolve
from ecg_gnn.pipeline.workspace import Workspace
from ecg_gnn.study.one_run import prepare
from ecg_gnn.study.store import Store, UnitRecord
from ecg_gnn.system.canvas import PALETTE, draw
from ecg_gnn.system.checks import InputError, check_choice
from ecg_gnn.system.seeds import derive_seed, seeded

_WIDTH = 64
_COLOURED = 4  # classes that are told apart by colour
Plane = NDArray[np.float64]


def draw_tsne(
    store: Store,
    path: Path,
    *,
    dataset: str | None = None,
    embedding: str = "mlp",
    recipe: str | None = None,
    data_root: str | Path | None = None,
    workspace: Workspace | None = None,
    num_nodes: int = 5000,
) -> None:
    """Draw the pair with the settings of a record in the store, or in one recipe.

    The dataset must be named where the store has several with this embedding. Of more
    than ``num_nodes``, a random sample is shown.
    """
    record = _find(store, dataset, embedding, recipe)
    config = RunConfig.from_dict(record.configuration.config)
    graph = load_dataset(config.dataset, data_root=data_root)
    if graph.sha256 != record.configuration.dataset_sha256:
        raise InputError(
            f"{graph.name!r} has changed since it was recorded: its checksum is another"
        )
    asked = replace(config, seed=record.seed, splits=(record.split,))
    config, graph = prepare(asked, None, graph)
    split = graph.split(record.split)
    evolved = evolve(embedding, graph, split, config, workspace or Workspace())
    generator = torch.Generator().manual_seed(derive_seed(record.seed, "t-SNE nodes"))
    order = torch.randperm(graph.num_nodes, generator=generator)
    shown = order[:num_nodes].sort().values
    name = tagged(embedding, run_tags(config, embedding, "statistics"))
    after = f"evolved graph ({name}, k = {config.evolve.k})"
    edges = {"input graph": graph.edge_index, after: evolved.edge_index}
    planes = {n: _plane(graph, e, shown, record.seed) for n, e in edges.items()}
    paint = partial(_paint, graph.name, planes, graph.y[shown].numpy())
    draw(path, paint, f"unit {record.id}")


def _find(
    store: Store, dataset: str | None, embedding: str, recipe: str | None
) -> UnitRecord:
    """The first record with this evolved graph alone."""
    found: dict[str, dict[str, UnitRecord]] = {}
    for record in store.records(recipe=recipe):
        at = record.configuration
        if at.embedding is not None:
            found.setdefault(at.embedding, {}).setdefault(at.dataset, record)
    check_choice("embedding", embedding, found)
    fits = found[embedding]
    wanted = next(iter(fits)) if dataset is None and len(fits) == 1 else str(dataset)
    check_choice("dataset", wanted, fits)
    return fits[wanted]


@torch.no_grad()
def _plane(graph: GraphDataset, edge_index: Tensor, shown: Tensor, seed: int) -> Plane:
    """A random GCN layer's output; the same weights whatever the edges."""
    with seeded(seed, "t-SNE layer"):
        layer = GCNConv(graph.num_features, _WIDTH)
    points = layer(graph.x, edge_index).relu()[shown]  # [N, C]
    perplexity = min(30.0, max(2.0, (len(points) - 1) / 3.5))
    seed = derive_seed(seed, "t-SNE") % 2**31
    flat = TSNE(init="pca", perplexity=perplexity, random_state=seed, n_jobs=1)
    return np.asarray(flat.fit_transform(points.numpy()), np.float64)


def _paint(
    dataset: str, planes: dict[str, Plane], labels: NDArray[np.int64], kind: Any
) -> Any:
    """Both planes side by side; the most frequent classes have colours, others grey."""
    classes, counts = np.unique(labels, return_counts=True)
    frequent = classes[np.argsort(-counts, kind="stable")][:_COLOURED]
    figure = kind(figsize=(7, 4.9), layout="constrained")
    size = min(16.0, max(3.0, 12_000 / len(labels)))
    for axes, (name, plane) in zip(figure.subplots(1, 2), planes.items(), strict=True):
        axes.scatter(*plane[~np.isin(labels, frequent)].T, color="0.88", s=size, lw=0)
        for label, colour in zip(frequent, PALETTE, strict=False):
            style = {"color": colour, "lw": 0, "label": f"class {label}"}
            axes.scatter(*plane[labels == label].T, s=size, **style)
        axes.set(title=name, xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    more = len(classes) - len(frequent)
    rest = f"grey: {more} smaller classes" if more else None
    handles, names = axes.get_legend_handles_labels()
    place = {"loc": "outside lower center", "ncols": _COLOURED}
    figure.legend(handles, names, title=rest, markerscale=4, **place)
    figure.suptitle(f"{dataset}: one random layer, by class")
    return figure
