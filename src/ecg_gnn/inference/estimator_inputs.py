"""What both estimators are given, arrays or graphs, checked and in one form."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import (
    UNLABELLED,
    canonical_edge_index,
    check_edges,
    check_features,
)
from ecg_gnn.ensemble import Ensemble
from ecg_gnn.inference.classifier import GraphClassifier
from ecg_gnn.system.checks import InputError, check_in_range

Array = NDArray[Any]


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
    val_mask: NDArray[np.bool_] | None
    """Validation nodes; None to draw some"""

    @classmethod
    def of(
        cls, x: Tensor, edges: Tensor, where: Array, y: Array, val: Any = None
    ) -> "Labelled":
        """With the labels of some nodes, which a mask or numbers name."""
        classes, found = np.unique(y, return_inverse=True)
        codes = np.full(len(x), UNLABELLED, dtype=np.int64)
        codes[where] = found
        return cls(x, edges, classes, codes, val)

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


class NodeEstimator(BaseEstimator):  # type: ignore[misc]  # no types
    """Reads nodes in the three forms that ``ECGClassifier`` tells of.

    Missing features become medians, beside columns that say where they were.
    """

    classifier_: GraphClassifier | Ensemble

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may give it."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, y: Any, edge_index: Any) -> Labelled:
        """Nodes to learn from, with what is known of them."""
        is_classifier = isinstance(self, ClassifierMixin)
        if isinstance(X, Data):
            x, edges = self._read_graph(X, reset=True)
            return Labelled.of(x, edges, *_own_labels(X, len(x)))
        if y is None:
            said = "requires y to be passed, but the target y is None"
            raise InputError(f"{type(self).__name__} {said}")
        if self.graph is not None:
            graph = self.graph
            if isinstance(graph, GraphDataset):
                graph = graph.data()
            if not isinstance(graph, Data):
                raise InputError(
                    "'graph' must be a PyG Data, or what load_dataset returns (got "
                    f"{type(graph).__name__})"
                )
            x, edges = self._read_graph(graph, reset=True)
            numbers = _check_numbers(X, len(x))
            self.n_features_in_ = 1
            known, labels = _known_labels(y, marked=False)
            check_consistent_length(numbers, known)
        else:
            known, labels = _known_labels(y, marked=is_classifier)
            if known.all():
                rows, labels = self._validated(X, y, reset=True)
            else:
                rows = self._validated(X, reset=True)
                check_consistent_length(rows, known)
        if is_classifier:
            check_classification_targets(labels)
        if self.graph is not None:
            _check_labels(graph, numbers[known], labels)
            return Labelled.of(x, edges, numbers[known], labels)
        rows = check_features("X", self._filled(rows, reset=True))
        edges = _check_edge_index(edge_index, len(rows), self.directed)
        return Labelled.of(torch.from_numpy(rows), edges, known, labels)

    def _predict(self, X: Any, edge_index: Any) -> NDArray[np.float64]:
        """Predictions of nodes, given as to ``fit``."""
        check_is_fitted(self, "classifier_")
        fitted = self.classifier_
        num_stored = len(fitted.x)
        if isinstance(X, Data):
            x, edges = self._read_graph(X, reset=False)
            if torch.equal(x, fitted.x) and torch.equal(edges, fitted.edge_index):
                return fitted.probabilities()  # the very graph that was trained on
        elif self.graph is not None:
            return fitted.probabilities()[_check_numbers(X, num_stored)]
        else:
            rows = self._validated(X, reset=False)
            if edge_index is None and fitted.edge_index.numel():
                warnings.warn(
                    "rows are new nodes without edges, for none were given with them; "
                    "edges among them go into edge_index",
                    stacklevel=4,
                )
            x = torch.from_numpy(self._filled(rows, reset=False)).float()
            edges = _check_edge_index(edge_index, len(rows), self.directed)
        return fitted.probabilities(x, edges + num_stored)[num_stored:]

    def _validated(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """Scikit-learn's own checks of a matrix and its targets."""
        options: dict[str, Any] = {"reset": reset, "dtype": np.float64}
        if y is not None:
            options |= {"y": y, "ensure_min_samples": 2}
        try:
            from sklearn.utils.validation import validate_data
        except ImportError:  # scikit-learn before 1.6
            return self._validate_data(X, force_all_finite="allow-nan", **options)
        return validate_data(self, X, ensure_all_finite="allow-nan", **options)

    def _filled(self, rows: Array, *, reset: bool) -> Array:
        """Rows without NaN, by medians of those that it is fitted on."""
        missing = np.isnan(rows)
        if reset:
            present = [column[~np.isnan(column)] for column in rows.T]
            medians = [np.median(each) if len(each) else 0.0 for each in present]
            self.medians_, self.marked_ = np.array(medians), missing.any(axis=0)
        if rows.shape[1:] != self.medians_.shape:
            return rows  # refused by whoever knows how many there must be
        whole = np.where(missing, self.medians_, rows)
        return np.hstack([whole, missing[:, self.marked_]])

    def _read_graph(self, data: Data, *, reset: bool) -> tuple[Tensor, Tensor]:
        """Features and edges of a PyG ``Data``, edges as they are stored."""
        if data.get("x") is None or data.get("edge_index") is None:
            raise InputError(f"'data' must have x and edge_index (got {data})")
        rows = data.x.detach().cpu().numpy()
        if rows.ndim == 2:
            rows = self._filled(rows, reset=reset)
        x = check_features("data", rows)
        if not reset and x.shape[1] != (width := self.classifier_.x.size(1)):
            raise InputError(
                f"'data' must have {width} features, as in fit (got {x.shape[1]})"
            )
        pairs = check_edges("data", data.edge_index.cpu().numpy().T, len(x))
        return torch.from_numpy(x), canonical_edge_index(pairs, len(x), True)


def _known_labels(y: Any, *, marked: bool) -> tuple[NDArray[np.bool_], Array]:
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


def _check_labels(data: Data, numbers: Array, y: Array) -> None:
    """Refuse -1 where that is how the graph itself marks nodes without a class.

    Of two classes it is one of them: -1 and 1 are usual names.
    """
    if y.shape != numbers.shape:
        raise InputError(f"'y' must be [{len(numbers)}] (got {list(y.shape)})")
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


def _own_labels(
    data: Data, num_nodes: int
) -> tuple[Array, Array, NDArray[np.bool_] | None]:
    """Nodes whose class is known and not hidden, these, and the validation mask."""
    if data.get("y") is None or data.y.numel() != num_nodes:
        raise InputError(f"'data' must have y, a class for each of {num_nodes} nodes")
    y = data.y.cpu().numpy().reshape(-1)
    shown, val = y >= 0, None
    if data.get("train_mask") is not None:
        train = _one_split(data.train_mask)
        if data.get("val_mask") is not None:
            val = _one_split(data.val_mask) & ~train
        shown &= train if val is None else train | val
    return shown, y[shown], val


def _one_split(mask: Tensor) -> NDArray[np.bool_]:
    if mask.dim() != 1:
        raise InputError(
            f"masks of 'data' must be one split [N] (got {list(mask.shape)})"
        )
    return mask.cpu().bool().numpy()


def _check_edge_index(edge_index: Any, num_rows: int, directed: bool) -> Tensor:
    """Edges ``[2, E]`` among rows; None is no edges."""
    if edge_index is None:
        return torch.empty(2, 0, dtype=torch.long)
    on_cpu = edge_index.cpu() if isinstance(edge_index, Tensor) else edge_index
    pairs = np.asarray(on_cpu)
    if pairs.ndim != 2 or pairs.shape[0] != 2:
        raise InputError(f"'edge_index' must be [2, E] (got {list(pairs.shape)})")
    checked = check_edges("edge_index", pairs.T, num_rows)
    return canonical_edge_index(checked, num_rows, directed)


def _check_numbers(X: Any, num_nodes: int) -> NDArray[np.int64]:
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
