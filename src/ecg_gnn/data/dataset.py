"""A graph with its splits, what makes it from arrays, and what describes it."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ecg_gnn.data import graph_checks as checks
from ecg_gnn.data.graph_checks import UNLABELLED
from ecg_gnn.data.splits import Masks, fewer_labels, stratified_splits
from ecg_gnn.reading import AnyArray
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import content_hash

if TYPE_CHECKING:
    from torch_geometric.data import Data

Array = AnyArray | Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """The training, validation and test nodes of one split; each mask is bool [N]."""

    train_mask: Tensor
    val_mask: Tensor
    test_mask: Tensor
    index: int


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphDataset:
    """A node-classification graph; made by :func:`make_dataset`, which checks it.

    Examples:
        >>> from ecg_gnn import load_dataset
        >>> graph = load_dataset("minesweeper-gen:rows=10,cols=10")
        >>> graph.num_nodes, graph.num_edges, graph.num_splits
        (100, 342, 10)
        >>> graph.data()
        Data(x=[100, 7], edge_index=[2, 684], y=[100])
    """

    name: str
    x: Tensor
    """Features, float32 [N, F]."""
    y: Tensor
    """Classes 0..C-1, int64 [N]; -1 where the class is unknown."""
    edge_index: Tensor
    """int64 [2, E]: sorted, each edge once, no self-loops; both ways if undirected."""
    num_classes: int
    metric: str
    train_masks: Tensor
    """bool [S, N], like the next two."""
    val_masks: Tensor
    test_masks: Tensor
    directed: bool
    sha256: str
    """Of the file the graph was read from, else of the contents."""
    note: str = ""
    """A remark that is shown wherever a number on this graph is shown."""

    def __getstate__(self) -> dict[str, Any]:
        """Tensors are sent to other processes as arrays.

        Torch would share their memory, for which the other process has to ask this one,
        which may have ended.
        """
        return {
            name: value.numpy() if isinstance(value, Tensor) else value
            for name, value in self.__dict__.items()
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            if sent := isinstance(value, np.ndarray):  # read-only by Ray and joblib
                value = value if value.flags.writeable else value.copy()
            self.__dict__[name] = torch.from_numpy(value) if sent else value

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.x.size(0)

    @property
    def num_features(self) -> int:
        """F."""
        return self.x.size(1)

    @property
    def num_edges(self) -> int:
        """Edges; an undirected one counts once although it is stored both ways."""
        stored = self.edge_index.size(1)
        return stored if self.directed else stored // 2

    @property
    def num_unlabelled(self) -> int:
        """Nodes of unknown class; they are in no split."""
        return int((self.y == UNLABELLED).sum())

    @property
    def num_splits(self) -> int:
        """S."""
        return self.train_masks.size(0)

    @property
    def masks(self) -> Masks:
        """Of training, validation and test nodes, each bool [S, N]."""
        return self.train_masks, self.val_masks, self.test_masks

    def split(self, index: int) -> Split:
        """One of the splits."""
        if not 0 <= index < self.num_splits:
            raise InputError(
                f"'split' of {self.name} must be in [0, {self.num_splits - 1}] "
                f"(got {index})"
            )
        train, val, test = (mask[index] for mask in self.masks)
        return Split(train_mask=train, val_mask=val, test_mask=test, index=index)

    def labelled_part(
        self, edge_index: Tensor, shown: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Edges between nodes with a class, renumbered, and those classes.

        What is measured about classes is measured there, of nodes that are ``shown``.
        """
        if not self.num_unlabelled and shown is None:
            return edge_index, self.y
        labelled = self.y != UNLABELLED
        if shown is not None:
            labelled &= shown
        number = labelled.long().cumsum(0) - 1
        kept = labelled[edge_index].all(0)
        return number[edge_index[:, kept]], self.y[labelled]

    def data(self) -> "Data":
        """The graph as PyG knows it, without the splits."""
        from torch_geometric.data import Data  # takes seconds; listing needs none

        return Data(x=self.x, y=self.y, edge_index=self.edge_index)

    def with_random_splits(self, num_splits: int, seed: int) -> "GraphDataset":
        """The same graph under fresh stratified 50/25/25 splits."""
        masks = stratified_splits(self.y, num_splits, seed)
        masks = _checked_masks(self.name, masks, self.y, self.metric)
        return self._with_masks(masks, f"{num_splits} random splits from seed {seed}")

    def with_label_rate(self, rate: float, seed: int) -> "GraphDataset":
        """The same graph with fewer training nodes, ``rate`` of all labelled ones."""
        fewer = fewer_labels(self.y, self.train_masks, rate, seed)
        masks = fewer, self.val_masks, self.test_masks
        return self._with_masks(masks, f"{100 * rate:.3g}% of the labelled nodes train")

    def _with_masks(self, masks: Masks, said: str) -> "GraphDataset":
        # The file's checksum would claim the file's own splits.
        digest = content_hash([self.x, self.y, self.edge_index, *masks])
        note = f"{self.note}; {said}" if self.note else said
        fresh: dict[str, Any] = dict(zip(checks.MASK_KEYS, masks, strict=True))
        return dataclasses.replace(self, sha256=digest, note=note, **fresh)


def make_dataset(
    *,
    name: str,
    x: Array,
    y: Array,
    edges: Array,
    masks: Sequence[Array] | None = None,
    num_splits: int = 10,
    seed: int = 0,
    metric: str | None = None,
    directed: bool = False,
    unlabelled: bool = False,
    sha256: str | None = None,
    note: str = "",
    source: str | None = None,
) -> GraphDataset:
    """Check a graph's arrays and make a dataset of them.

    Args:
        name: What records and tables call the graph.
        x: Features, [N, F].
        y: Classes 0..C-1, [N].
        edges: Pairs of nodes, [E, 2]. Repeats and self-loops are dropped; an
            undirected edge may come in either direction or in both.
        masks: Train, validation and test masks, [S, N] each; without them stratified
            splits are drawn.
        num_splits: How many splits to draw where there are no masks.
        seed: The seed of those splits.
        metric: "accuracy" or "roc_auc"; by default ROC AUC for two classes of at least
            three nodes.
        directed: Whether (u, v) differs from (v, u).
        unlabelled: Whether nodes may have no class, written as -1.
        sha256: Of the file; by default of the contents.
        note: See :class:`GraphDataset`.
        source: The name that error messages begin with, by default ``name``.

    Examples:
        >>> x, y = np.eye(12), np.arange(12) % 2
        >>> ring = [[node, (node + 1) % 12] for node in range(12)]
        >>> graph = make_dataset(name="ring", x=x, y=y, edges=ring, num_splits=2)
        >>> graph.num_edges, graph.metric, graph.train_masks.shape
        (12, 'roc_auc', torch.Size([2, 12]))
    """
    source = source or name
    tx = torch.from_numpy(checks.check_features(source, _array(x)))
    labels = checks.check_labels(source, _array(y), len(tx), unlabelled=unlabelled)
    pairs = checks.check_edges(source, _array(edges), len(tx))
    num_classes = int(labels.max()) + 1
    metric = checks.check_metric(source, metric, labels)
    ty = torch.from_numpy(labels)
    edge_index = checks.canonical_edge_index(pairs, len(tx), directed)
    drawn = masks or stratified_splits(ty, num_splits, seed)
    if masks is None:  # the caller gave none, so the message must say whose they are
        source = f"{source}: splits drawn from seed {seed}"
    checked = _checked_masks(source, drawn, ty, metric)
    return GraphDataset(
        name=name,
        x=tx,
        y=ty,
        edge_index=edge_index,
        num_classes=num_classes,
        metric=metric,
        **dict(zip(checks.MASK_KEYS, checked, strict=True)),
        directed=directed,
        sha256=sha256 or content_hash([tx, ty, edge_index, *checked]),
        note=note,
    )


def _checked_masks(
    source: str, masks: Sequence[Array], y: Tensor, metric: str
) -> Masks:
    """The three masks as bool tensors, checked against the labels."""
    arrays = [_array(mask) for mask in masks]
    checked = checks.check_masks(source, arrays, y.numpy(), metric)
    train, val, test = map(torch.from_numpy, checked)
    return train, val, test


def _array(value: Array) -> AnyArray:
    """A NumPy view of an array or of a tensor on any device."""
    return np.asarray(value.detach().cpu() if isinstance(value, Tensor) else value)


def describe(dataset: GraphDataset) -> dict[str, Any]:
    """Sizes, classes, splits and shape of one graph.

    A node's degree counts the edges at it, in either direction. Components are those
    of the graph with directions forgotten. ``duplicate_feature_rows`` counts the rows
    that repeat an earlier one.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # An undirected edge is stored both ways already.
    ends = dataset.edge_index if dataset.directed else dataset.edge_index[0]
    degree = torch.bincount(ends.flatten(), minlength=dataset.num_nodes)
    source, target = dataset.edge_index.numpy()
    entries = (np.ones(len(source), dtype=np.int8), (source, target))
    adjacency = coo_array(entries, shape=(dataset.num_nodes, dataset.num_nodes))
    num_components, _ = connected_components(adjacency.tocsr(), directed=False)
    rows = (dataset.x + 0.0).numpy()  # -0.0 becomes 0.0: equal numbers, equal bytes
    sizes = torch.stack([each.sum(1) for each in dataset.masks], dim=1).tolist()
    parts = ("train", "val", "test")
    return {
        "name": dataset.name,
        "nodes": dataset.num_nodes,
        "edges": dataset.num_edges,
        "features": dataset.num_features,
        "classes": dataset.num_classes,
        "class_counts": torch.bincount(dataset.y[dataset.y >= 0]).tolist(),
        "unlabelled_nodes": dataset.num_unlabelled,
        "metric": dataset.metric,
        "directed": dataset.directed,
        "splits": [dict(zip(parts, row, strict=True)) for row in sizes],
        "isolated_nodes": int((degree == 0).sum()),
        "connected_components": int(num_components),
        "degree": {
            "min": int(degree.min()),
            "median": float(np.median(degree.numpy())),
            "max": int(degree.max()),
        },
        "duplicate_feature_rows": len(rows) - len({row.tobytes() for row in rows}),
        "sha256": dataset.sha256,
        "note": dataset.note,
    }
