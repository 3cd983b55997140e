"""The estimator's inputs, arrays or graphs, checked and brought into one form."""

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import (
    UNLABELLED,
    canonical_edge_index,
    check_edges,
    check_features,
)
from ecg_gnn.system.checks import (
    METRIC_NAMES,
    InputError,
    check_in_range,
    default_metric,
)
from ecg_gnn.system.seeds import derive_seed

Array = NDArray[Any]


class NodeEstimator(BaseEstimator):  # type: ignore[misc]  # no types
    """An estimator whose features may have missing values."""

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may give it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


class Labelled(NamedTuple):
    """A graph, and the classes of some of its nodes."""

    x: Tensor
    """Features, float32 ``[N, F]``"""
    edge_index: Tensor
    """Sorted, each edge once"""
    classes: Array
    """Sorted"""
    codes: NDArray[np.int64]
    """The number of each node's class, -1 where it is hidden"""
    val_mask: NDArray[np.bool_] | None = None
    """Validation nodes; None to draw some"""

    def check_classes(self) -> None:
        """Refuse fewer than two."""
        if len(self.classes) < 2:
            raise InputError(
                "'y' must have at least 2 classes: a classifier cannot learn one class "
                f"(got {self.classes.tolist()})"
            )

    def numbers(self) -> NDArray[np.float64]:
        """The labels as numbers, NaN where one is hidden."""
        try:
            values = self.classes.astype(np.float64)
        except (TypeError, ValueError):
            values = np.array([np.inf])
        if not len(values) or not np.isfinite(values).all():
            raise InputError(
                f"'y' must be finite numbers (got {self.classes[:3].tolist()})"
            )
        return np.where(self.codes >= 0, values[self.codes], np.nan)

    def dataset(self, validation_fraction: float, seed: int) -> GraphDataset:
        """A dataset with one split, whose test part is empty."""
        val = self.val_mask
        if val is None:
            val = _draw_validation(self.codes, validation_fraction, seed)
        val = val & (self.codes >= 0)
        train = (self.codes >= 0) & ~val
        if not val.any():  # too few nodes to spare any
            val = train
        metric = default_metric(len(self.classes))
        if METRIC_NAMES[metric].two_classes and len(np.unique(self.codes[val])) < 2:
            metric = "accuracy"
        return GraphDataset(
            name="data",
            x=self.x,
            y=torch.from_numpy(self.codes),
            edge_index=self.edge_index,
            num_classes=len(self.classes),
            metric=metric,
            train_masks=torch.from_numpy(train[None]),
            val_masks=torch.from_numpy(val[None]),
            test_masks=torch.zeros(1, len(train), dtype=torch.bool),
            directed=True,  # edges are as they are to be read
            sha256="",
        )


def validated(estimator: Any, X: Any, y: Any = None, *, reset: bool) -> Any:
    """Scikit-learn's own checks of a matrix and its targets."""
    options: dict[str, Any] = {"reset": reset, "dtype": np.float64}
    if y is not None:
        options |= {"y": y, "ensure_min_samples": 2}
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # scikit-learn before 1.6
        return estimator._validate_data(X, force_all_finite="allow-nan", **options)
    return validate_data(estimator, X, ensure_all_finite="allow-nan", **options)


def filled(estimator: Any, rows: Array, *, reset: bool) -> Array:
    """Rows without NaN: medians instead, and columns that say where they were."""
    missing = np.isnan(rows)
    if reset:
        present = [column[~np.isnan(column)] for column in rows.T]
        medians = [np.median(each) if len(each) else 0.0 for each in present]
        estimator.medians_, estimator.marked_ = np.array(medians), missing.any(axis=0)
    if rows.shape[1:] != estimator.medians_.shape:
        return rows  # refused by whoever knows how many there must be
    whole = np.where(missing, estimator.medians_, rows)
    return np.hstack([whole, missing[:, estimator.marked_]])


def filled_data(estimator: Any, data: Data, *, reset: bool) -> Data:
    """The same graph, its features filled in."""
    if data.get("x") is None or data.x.dim() != 2:
        return data
    changed = copy.copy(data)
    rows = data.x.detach().cpu().numpy()
    changed.x = torch.from_numpy(filled(estimator, rows, reset=reset))
    return changed


def known_labels(y: Any, *, marked: bool) -> tuple[NDArray[np.bool_], Array]:
    """Which rows have a label, and these: not those of None or NaN.

    Nor, if they may be ``marked``, those of -1 beside two classes or more: of two
    values it is a class, as -1 and 1 are usual names.
    """
    labels = np.asarray(y)
    known = np.ones(labels.shape[:1], dtype=bool)
    if labels.ndim == 1 and labels.dtype.kind in "fO":
        known = np.array([each is not None and each == each for each in labels])
    elif labels.ndim == 1 and labels.dtype.kind == "i" and marked:
        known = (labels != UNLABELLED) | (len(np.unique(labels)) <= 2)
    if known.all():
        return known, labels
    labels = np.array(labels[known].tolist())  # None had made objects of them
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    return known, labels


def check_targets(estimator: Any, y: Array) -> None:
    """Refuse numbers as classes."""
    if isinstance(estimator, ClassifierMixin):
        check_classification_targets(y)


def read_arrays(
    rows: Array, y: Array, known: NDArray[np.bool_], edge_index: Tensor
) -> Labelled:
    """A feature matrix, and the classes of its known rows."""
    classes, found = np.unique(y, return_inverse=True)
    codes = np.full(len(rows), UNLABELLED, dtype=np.int64)
    codes[known] = found
    x = torch.from_numpy(check_features("X", rows))
    return Labelled(x, edge_index, classes, codes)


def as_data(graph: Any) -> Data:
    """A graph that nodes are taken from, as PyG ``Data``."""
    if isinstance(graph, GraphDataset):
        return graph.data()
    if not isinstance(graph, Data):
        raise InputError(
            "'graph' must be a PyG Data, or what load_dataset returns (got "
            f"{type(graph).__name__})"
        )
    return graph


def read_graph(data: Data, numbers: Array | None, y: Array | None) -> Labelled:
    """A graph with the classes of the given nodes, or else of those in its masks."""
    x, edge_index = read_data(data, None)
    num_nodes, val = x.size(0), None
    if numbers is None or y is None:
        numbers, val = _labelled_nodes(data, num_nodes)
        y = data.y.cpu().numpy().reshape(-1)[numbers]
    if y.shape != numbers.shape:
        raise InputError(f"'y' must be [{len(numbers)}] (got {list(y.shape)})")
    _check_labelled(data, numbers, y)
    classes, codes = np.unique(y, return_inverse=True)
    whole = np.full(num_nodes, UNLABELLED, dtype=np.int64)
    whole[numbers] = codes
    return Labelled(x, edge_index, classes, whole, val)


def _check_labelled(data: Data, numbers: Array, y: Array) -> None:
    """Refuse -1 where that is how the graph itself marks nodes without a class.

    Of two classes it is one of them: -1 and 1 are usual names.
    """
    own = data.get("y")
    if not isinstance(own, Tensor) or own.numel() != data.num_nodes:
        return
    unlabelled = own.reshape(-1).cpu().numpy()[numbers] == UNLABELLED
    may_mark = y.dtype.kind == "i" and len(np.unique(y)) > 2
    if may_mark and (unlabelled & (y == UNLABELLED)).any():
        raise InputError(
            f"'y' must be classes of nodes that have one: {UNLABELLED} marks those of "
            f"'graph' that have none (got it {int((y == UNLABELLED).sum())} times; fit "
            "on the others)"
        )


def _labelled_nodes(
    data: Data, num_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
    """Nodes of a known class that is not hidden, and the validation mask if any."""
    y = data.get("y")
    if y is None or y.numel() != num_nodes:
        raise InputError(f"'data' must have y, a class for each of {num_nodes} nodes")
    shown, val = (y.reshape(-1) >= 0).cpu().numpy(), None
    if data.get("train_mask") is not None:
        train = _one_split(data.train_mask)
        if data.get("val_mask") is not None:
            val = _one_split(data.val_mask) & ~train
        shown &= train if val is None else train | val
    return np.flatnonzero(shown), val


def _one_split(mask: Tensor) -> NDArray[np.bool_]:
    if mask.dim() != 1:
        raise InputError(
            f"masks of 'data' must be one split [N] (got {list(mask.shape)})"
        )
    return mask.cpu().bool().numpy()


def read_data(data: Data, num_features: int | None) -> tuple[Tensor, Tensor]:
    """Features and edges of a PyG ``Data``, edges as they are stored."""
    if data.get("x") is None or data.get("edge_index") is None:
        raise InputError(f"'data' must have x and edge_index (got {data})")
    x = check_features("data", data.x.detach().cpu().numpy())
    if num_features is not None and x.shape[1] != num_features:
        raise InputError(
            f"'data' must have {num_features} features, as in fit (got {x.shape[1]})"
        )
    pairs = check_edges("data", data.edge_index.cpu().numpy().T, len(x))
    return torch.from_numpy(x), canonical_edge_index(pairs, len(x), True)


def check_edge_index(edge_index: Any, num_rows: int, directed: bool) -> Tensor:
    """Edges ``[2, E]`` among rows; None is no edges."""
    if edge_index is None:
        return torch.empty(2, 0, dtype=torch.long)
    on_cpu = edge_index.cpu() if isinstance(edge_index, Tensor) else edge_index
    pairs = np.asarray(on_cpu)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        raise InputError(f"'edge_index' must be [2, E] (got {list(pairs.shape)})")
    checked = check_edges("edge_index", pairs.T, num_rows)
    return canonical_edge_index(checked, num_rows, directed)


def check_numbers(X: Any, num_nodes: int) -> NDArray[np.int64]:
    """Node numbers ``[n]`` or ``[n, 1]`` of a graph, each once."""
    numbers = np.asarray(X)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu" or not numbers.size:
        raise InputError(
            "'X' must be node numbers [n] or [n, 1] of 'graph' (got "
            f"{numbers.dtype} {list(numbers.shape)})"
        )
    for extreme in (numbers.min(), numbers.max()):
        check_in_range("X", int(extreme), 0, num_nodes - 1)
    return numbers.astype(np.int64)


def _draw_validation(
    codes: NDArray[np.int64], fraction: float, seed: int
) -> NDArray[np.bool_]:
    """A share of every class; at least one node of each stays for training."""
    rng = np.random.default_rng(derive_seed(seed, "validation"))
    chosen = np.zeros(len(codes), dtype=bool)
    for code in range(codes.max() + 1):
        nodes = rng.permutation(np.flatnonzero(codes == code))
        chosen[nodes[: min(round(fraction * len(nodes)), len(nodes) - 1)]] = True
    return chosen
