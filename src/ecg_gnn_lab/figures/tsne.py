"""The paper's t-SNE pair: one random GCN layer over G and over G_ECG, by label.

Nothing is trained for the picture: the layer's weights are random and the same on both
sides, so that whatever tells the classes apart comes from the edges.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
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
from ecg_gnn.system.checks import InputError, MissingExtraError
from ecg_gnn.system.seeds import derive_seed, seeded

Points = NDArray[np.float64]
_WIDTH = 64
_COLOURED = 4
"""Classes that are told apart by colour"""


class Projection(NamedTuple):
    """Nodes in two planes, over the input graph and over the evolved one."""

    unit: str
    """The record whose settings and split it has"""
    dataset: str
    embedding: str
    k: int
    labels: NDArray[np.int64]
    before: Points
    after: Points


def project(
    store: Store,
    *,
    dataset: str | None = None,
    embedding: str = "mlp",
    recipe: str | None = None,
    data_root: str | Path | None = None,
    workspace: Workspace | None = None,
    num_nodes: int = 5000,
) -> Projection:
    """Compute the pair with the settings of a record in the store, or in one recipe.

    The dataset must be named where the store has several with this embedding. Of more
    than ``num_nodes``, a random sample is shown.
    """
    try:
        import openTSNE  # noqa: F401
    except ImportError:
        raise MissingExtraError("openTSNE", "plot", "t-SNE") from None
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
    before, after = (
        _tsne(_layer(graph, each, record.seed)[shown].numpy(), record.seed)
        for each in (graph.edge_index, evolved.edge_index)
    )
    name = tagged(embedding, run_tags(config, embedding, "statistics"))
    about = record.id, graph.name, name, config.evolve.k or 0
    return Projection(*about, graph.y[shown].numpy(), before, after)


def _find(
    store: Store, dataset: str | None, embedding: str, recipe: str | None
) -> UnitRecord:
    """The first record with this evolved graph alone."""
    fits: dict[str, UnitRecord] = {}
    known = set()
    for record in store.records(recipe=recipe):
        at = record.configuration
        known |= {f"{at.dataset} {at.embedding}"} if at.embedding else set()
        named = dataset in (None, at.dataset, at.config["dataset"])
        if named and at.embedding == embedding:
            fits.setdefault(at.dataset, record)
    if not fits:
        on = f" on {dataset!r}" if dataset else ""
        raise InputError(
            f"the store has no record of embedding {embedding!r}{on}; it has "
            f"{sorted(known)}"
        )
    if len(fits) > 1:
        raise InputError(f"'dataset' must be one of {list(fits)} (not given)")
    return next(iter(fits.values()))


@torch.no_grad()
def _layer(graph: GraphDataset, edge_index: Tensor, seed: int) -> Tensor:
    """A random GCN layer's output; the same weights whatever the edges."""
    with seeded(seed, "t-SNE layer"):
        layer = GCNConv(graph.num_features, _WIDTH)
    return cast(Tensor, layer(graph.x, edge_index).relu())  # [N, C]


def _tsne(points: NDArray[np.float32], seed: int) -> Points:
    from openTSNE import TSNE

    perplexity = min(30.0, max(2.0, (len(points) - 1) / 3.5))
    seed = derive_seed(seed, "t-SNE") % 2**31
    options = {"initialization": "pca", "random_state": seed, "n_jobs": 1}
    tsne = TSNE(n_components=2, perplexity=perplexity, **options)
    return np.asarray(tsne.fit(points.astype(np.float64)))


def _agreement(points: Points, labels: NDArray[np.int64]) -> float:
    """How often a point and the one nearest to it share a class."""
    _, nearest = cKDTree(points).query(points, k=[2])  # the first is the point itself
    return float((labels[nearest].ravel() == labels).mean())


def draw_tsne(projection: Projection, path: Path) -> None:
    """Both planes side by side; the most frequent classes have colours, others grey."""
    labels = projection.labels
    evolved = f"evolved graph ({projection.embedding}, k = {projection.k})"
    sides = {"input graph": projection.before, evolved: projection.after}
    shares = [_agreement(points, labels) for points in sides.values()]
    classes, counts = np.unique(labels, return_counts=True)
    frequent = classes[np.argsort(-counts, kind="stable")][:_COLOURED]

    def paint(kind: Any) -> Any:
        figure = kind(figsize=(7, 4.9), layout="constrained")
        axes = figure.subplots(1, 2)
        size = min(16.0, max(3.0, 12_000 / len(labels)))
        for each, (name, points), share in zip(
            axes, sides.items(), shares, strict=True
        ):
            others = points[~np.isin(labels, frequent)]
            each.scatter(*others.T, color="0.88", s=size, lw=0)
            for label, colour in zip(frequent, PALETTE, strict=False):
                shown = points[labels == label].T
                each.scatter(*shown, color=colour, s=size, lw=0, label=f"class {label}")
            title = f"{name}:\n{share:.0%} of nearest points agree"
            each.set(title=title, xticks=[], yticks=[])
            each.spines[:].set_visible(False)
        handles, names = axes[0].get_legend_handles_labels()
        key = {"loc": "outside lower center", "markerscale": 4, "ncols": 4}
        more = len(classes) - len(frequent)
        rest = f"grey: {more} smaller classes" if more else None
        figure.legend(handles, names, title=rest, **key)
        better = "better" if shares[1] > shares[0] else "no better"
        figure.suptitle(
            f"{projection.dataset}: evolved edges alone\ntell classes apart {better}"
        )
        return figure

    draw(path, paint, f"unit {projection.unit}")
