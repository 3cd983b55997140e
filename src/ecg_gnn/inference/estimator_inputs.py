"""What both estimators are given, arrays or graphs, checked and in one form."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.data import GraphDataset
from ecg_gnn.data.graph_checks import (
    UNLABELLED,
    canonical_edge_index,
    check_edges,
    check_features,
)
from ecg_gnn.ensemble.weighted import Ensemble
from ecg_gnn.inference.classifier import GraphClassifier
from ecg_gnn.system.checks import InputError, check_in_range

Array = NDArray[Any]


class Labelled(NamedTuple):
    """A graph, and the classes of some of its nodes."""

    x: Tensor  # features, float32 [N, F]
    edge_index: Tensor  # sorted, each edge once
    classes: Array  # sorted
    codes: NDArray[np.int64]  # the number of each node's class, -1 where it is hidden
    val_mask: NDArray[np.bool_] | None  # validation nodes; None to draw some

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
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _read(self, X: Any, y: Any, edge_index: Any) -> Labelled:
        """Nodes to learn from, with what is known of them."""
        if isinstance(X, Data):
            x, edges = self._read_graph(X, reset=True)
            return Labelled.of(x, edges, *_own_labels(X, len(x)))
        if y is None:
            said = "requires y to be passed, but the target y is None"
            raise InputError(f"{type(self).__name__} {said}")
        if self.graph is None:
            x, edges = self._read_rows(X, edge_index, reset=True)
            nodes = np.arange(len(x))
        else:
            graph = self.graph
            graph = graph.data() if isinstance(graph, GraphDataset) else graph
            if not isinstance(graph, Data):
                raise InputError(
                    "'graph' must be a PyG Data, or what load_dataset returns (got "
                    f"{type(graph).__name__})"
                )
            x, edges = self._read_graph(graph, reset=True)
            nodes, self.n_features_in_ = _check_numbers(X, len(x)), 1
        is_classifier = isinstance(self, ClassifierMixin)
        known, labels = _known_labels(y, is_classifier)
        check_consistent_length(nodes, known)
        if is_classifier:
            check_classification_targets(labels)
        return Labelled.of(x, edges, nodes[known], labels)

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
            x, edges = self._read_rows(X, edge_index, reset=False)
            if edge_index is None and fitted.edge_index.numel():
                warnings.warn(
                    "rows are taken as new nodes without edges; pass their edges as "
                    "edge_index",
                    stacklevel=4,
                )
        return fitted.probabilities(x, edges + num_stored)[num_stored:]

    def _read_rows(
        self, X: Any, edge_index: Any, *, reset: bool
    ) -> tuple[Tensor, Tensor]:
        """Features of a matrix, and edges ``[2, E]`` among its rows, if any."""
        options: dict[str, Any] = {"ensure_all_finite": "allow-nan", "dtype": float}
        options["ensure_min_samples"] = 2 if reset else 1
        x = self._filled(validate_data(self, X, reset=reset, **options), reset)
        if edge_index is None:
            return x, torch.empty(2, 0, dtype=torch.long)
        on_cpu = edge_index.cpu() if isinstance(edge_index, Tensor) else edge_index
        pairs = np.asarray(on_cpu)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise InputError(f"'edge_index' must be [2, E] (got {list(pairs.shape)})")
        checked = check_edges("edge_index", pairs.T, len(x))
        return x, canonical_edge_index(checked, len(x), self.directed)

    def _read_graph(self, data: Data, *, reset: bool) -> tuple[Tensor, Tensor]:
        """Features and edges of a PyG ``Data``, edges as they are stored."""
        if data.get("x") is None or data.get("edge_index") is None:
            raise InputError(f"'data' must have x and edge_index (got {data})")
        x = self._filled(data.x.detach().cpu().numpy(), reset)
        pairs = check_edges("data", data.edge_index.cpu().numpy().T, len(x))
        return x, canonical_edge_index(pairs, len(x), True)

    def _filled(self, rows: Array, reset: bool) -> Tensor:
        """Features without NaN, by medians of the nodes that it is fitted on."""
        if reset:
            self.imputer_ = SimpleImputer(
                strategy="median", add_indicator=True, keep_empty_features=True
            ).fit(rows)
        return torch.from_numpy(check_features("X", self.imputer_.transform(rows)))


def _known_labels(y: Any, is_classifier: bool) -> tuple[NDArray[np.bool_], Array]:
    """Which rows have a label, and these: not those of None or NaN.

    Nor, of classes, those of -1 beside two others: of two values it is a class, as -1
    and 1 are usual names.
    """
    labels = column_or_1d(y, warn=True)
    known = np.ones(len(labels), dtype=bool)
    if labels.dtype.kind in "fO":
        known = np.array([each is not None and each == each for each in labels])
    elif labels.dtype.kind == "i" and is_classifier:
        known = (labels != UNLABELLED) | (len(np.unique(labels)) <= 2)
    if not known.all():
        labels = np.array(labels[known].tolist())  # None had made objects of them
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    return known, labels


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


def _check_numbers(X: Any, num_nodes: int) -> NDArray[np.int64]:
    """Node numbers ``[n]`` or ``[n, 1]`` of a graph."""
    numbers = np.atleast_1d(X)
    if numbers.dtype.kind not in "iu" or not 0 < numbers.size == len(numbers):
        raise InputError(
            "'X' must be node numbers [n] or [n, 1] of 'graph' (got "
            f"{numbers.dtype} {list(numbers.shape)})"
        )
    for extreme in (numbers.min(), numbers.max()):
        check_in_range("X", int(extreme), 0, num_nodes - 1)
    return numbers.reshape(-1).astype(np.int64)
