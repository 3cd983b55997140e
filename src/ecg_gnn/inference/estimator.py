"""The method as scikit-learn estimators."""

import warnings
from inspect import Parameter, Signature
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted
from torch_geometric.data import Data

from ecg_gnn.config.run_config import kept_options
from ecg_gnn.ensemble import Ensemble, Search, search
from ecg_gnn.inference import estimator_inputs as inputs
from ecg_gnn.inference.classifier import GraphClassifier, fit_classifier
from ecg_gnn.inference.fitting import class_weights, fit_settings
from ecg_gnn.pipeline.classification import with_batches_if_large
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.system.checks import (
    InputError,
    check_choice,
    check_in_range,
    parse_budget,
)
from ecg_gnn.system.machine import holding

Array = NDArray[Any]
_SETTINGS = {option: None for option in kept_options() if option != "seed"}
"""What a model that is kept can have; None is chosen by the graph."""
_PARAMETERS: dict[str, Any] = _SETTINGS | {
    "balance_classes": False,
    "validation_fraction": 0.2,
    "directed": False,
    "graph": None,
    "random_state": 0,
}
_BY_NAME = Parameter.KEYWORD_ONLY


class ECGClassifier(ClassifierMixin, inputs.NodeEstimator):  # type: ignore[misc]  # no types
    """Node classification by Evolving Computation Graphs, as a scikit-learn estimator.

    There are three ways to say what the nodes are:

    - ``fit(data)`` and ``predict(data)`` with a PyG ``Data``. Nodes train where
      ``train_mask`` is set (without one, where ``y >= 0``) and choose the best
      step where ``val_mask`` is; ``predict`` answers for every node of its data.
    - ``ECGClassifier(graph=data).fit(nodes, y)`` with node numbers ``[n]`` or
      ``[n, 1]``: features and edges of the whole graph are seen, classes of the given
      nodes only. This is the form for ``GridSearchCV`` and ``cross_val_score``, which
      then split nodes and leave the graph whole.
    - ``fit(X, y, edge_index=...)`` with a feature matrix ``[n, F]``, a row per node.
      ``predict`` takes rows as *new* nodes: their neighbours in the evolved graph are
      found among the training rows, and edges among them may be given. Without edges
      the evolved graph is all there is.

    Missing features (NaN) become medians, beside columns that say where they were.

    A part of the training nodes is set aside to choose the best step and to calibrate
    probabilities, unless the data has a ``val_mask``.

    Parameters are the settings by the names of their options, see ``RunConfig.of``:
    ``embedding``, ``model``, ``k`` (cut to the number of other nodes), ``steps`` and so
    on. What is not given is chosen by the graph. And these:

    - ``balance_classes``: give rare classes more weight. Probabilities are
      corrected for it, so they are still those of the population.
    - ``validation_fraction``: share of the training nodes that is set aside.
    - ``directed``: whether edges given as ``edge_index`` have one direction only.
    - ``graph``: the graph, where ``X`` is node numbers: a PyG ``Data``, or what
      ``load_dataset`` returns.
    - ``random_state``: the random seed, which decides every number, in threads and
      joblib's processes too. Fits in several threads take turns.

    Attributes:
        classes_: The classes, sorted.
        n_features_in_: Columns of ``X``.
        best_step_: The step of the best validation score.
        validation_score_: That score.
        classifier_: Everything fitted.

    Examples:
        >>> import numpy as np
        >>> from ecg_gnn import ECGClassifier
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> y = np.where(X[:, 0] > 0, "up", "down")
        >>> model = ECGClassifier(steps=30, lr=0.01, hidden=16, k=3).fit(X, y)
        >>> bool(model.score(X, y) > 0.8)
        True
    """

    def __init__(self, **parameters: Any) -> None:
        for name in parameters:
            check_choice("parameter", name, _PARAMETERS)
        for name, default in _PARAMETERS.items():
            setattr(self, name, parameters.get(name, default))

    # scikit-learn, and editors, learn from it which parameters there are.
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("self", Parameter.POSITIONAL_ONLY)]
        + [Parameter(n, _BY_NAME, default=value) for n, value in _PARAMETERS.items()]
    )

    @holding("fit")
    def fit(
        self, X: Any, y: Any = None, edge_index: Any = None, budget: Any = None
    ) -> Self:
        """Embed, evolve and train; or, with a budget, search for the best model.

        Args:
            X: A ``Data``, node numbers of ``graph``, or features.
            y: Classes of the rows of ``X``; a ``Data`` brings its own. None and NaN are
                no class, nor is -1 beside two others in a matrix's ``y``.
            edge_index: Edges ``[2, E]`` among the rows of a feature matrix.
            budget: Seconds, or a text such as ``"10m"``, for the search that
                ``ecg-gnn fit`` makes; other settings are then not read.
        """
        check_in_range("validation_fraction", self.validation_fraction, 0.01, 0.9)
        labelled = _read(self, X, y, edge_index)
        labelled.check_classes()
        self.classes_ = labelled.classes
        if budget is not None:
            found = _search(self, labelled, labelled.codes, len(self.classes_), budget)
            self.classifier_: GraphClassifier | Ensemble = found.ensemble
            self.best_step_, (self.validation_score_, _) = None, found.score()
            return self
        seed = int(self.random_state or 0)
        dataset = labelled.dataset(self.validation_fraction, seed)
        given = {name: getattr(self, name) for name in _SETTINGS}
        if self.k is not None:
            check_in_range("k", self.k, 1, None)
            given["k"] = min(self.k, dataset.num_nodes - 1)
        embedding = given["embedding"] = self.embedding or "mlp"
        config = fit_settings(dataset, seed=seed, **given)
        config = with_batches_if_large(config, dataset)
        weights = class_weights(dataset, config, bool(self.balance_classes))
        self.classifier_, result = fit_classifier(
            dataset, config, embedding, class_weights=weights
        )
        self.best_step_, self.validation_score_ = result.best_step, result.val
        return self

    def predict_proba(self, X: Any, edge_index: Any = None) -> NDArray[np.float64]:
        """Calibrated probabilities of every class, in the order of ``classes_``.

        Nodes and their edges are given as to ``fit``.
        """
        check_is_fitted(self, "classifier_")
        return _predict(self, X, edge_index)

    def predict(self, X: Any, edge_index: Any = None) -> Array:
        """The most probable class of every row."""
        best = self.predict_proba(X, edge_index).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; of a ``Data`` on its test mask, else on all nodes with a class."""
        if not isinstance(X, Data) or y is not None:
            return float(super().score(X, y, sample_weight))
        truth = X.y.cpu().numpy().reshape(-1)
        asked = X.get("test_mask")
        chosen = truth >= 0 if asked is None else asked.cpu().numpy().astype(bool)
        return float((self.predict(X)[chosen] == truth[chosen]).mean())


class ECGRegressor(RegressorMixin, inputs.NodeEstimator):  # type: ignore[misc]  # no types
    """Regression on nodes, by the best models that a search finds.

    Nodes are given as to ``ECGClassifier``, with a number for each in ``y``.

    Args:
        budget: Seconds for the search, or a text such as ``"10m"``; None is by size.
        metric: What to optimise: ``r2``, ``rmse`` or ``mae``.
        device: Where networks are trained; None is a GPU where there is one.
        directed: Whether edges given as ``edge_index`` have one direction only.
        graph: The graph, where ``X`` is node numbers.
        random_state: The random seed.

    Attributes:
        classifier_: Everything fitted.
        validation_score_: The score on nodes that were held out.

    Examples:
        >>> import numpy as np
        >>> from ecg_gnn import ECGRegressor
        >>> X = np.random.default_rng(0).normal(size=(60, 4))
        >>> model = ECGRegressor(budget=3).fit(X, 2 * X[:, 0])
        >>> bool(model.score(X, 2 * X[:, 0]) > 0.5)
        True
    """

    def __init__(
        self,
        *,
        budget: Any = None,
        metric: str | None = None,
        device: str | None = None,
        directed: bool = False,
        graph: Any = None,
        random_state: int = 0,
    ) -> None:
        self.budget, self.metric, self.device = budget, metric, device
        self.directed, self.graph = directed, graph
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, edge_index: Any = None, budget: Any = None
    ) -> Self:
        """Search; ``budget`` here takes precedence over the constructor's."""
        labelled = _read(self, X, y, edge_index)
        budget = self.budget if budget is None else budget
        found = _search(self, labelled, labelled.numbers(), 0, budget)
        self.classifier_, (self.validation_score_, _) = found.ensemble, found.score()
        return self

    def predict(self, X: Any, edge_index: Any = None) -> Array:
        """The number of every row."""
        return np.asarray(_predict(self, X, edge_index)[:, 0])


def _search(
    estimator: Any,
    labelled: inputs.Labelled,
    values: Array,
    num_classes: int,
    budget: Any,
) -> Search:
    return search(
        labelled.x,
        labelled.edge_index,
        values,
        num_classes,
        labelled.codes >= 0,
        metric=getattr(estimator, "metric", None),
        budget=parse_budget(budget) if isinstance(budget, str) else budget,
        seed=int(estimator.random_state or 0),
        device=str(pick_device(estimator.device or "auto")),
    )


def _predict(estimator: Any, X: Any, edge_index: Any) -> NDArray[np.float64]:
    """A fitted estimator's predictions of nodes, given as to ``fit``."""
    check_is_fitted(estimator, "classifier_")
    fitted: GraphClassifier | Ensemble = estimator.classifier_
    num_stored, num_features = fitted.x.shape
    if isinstance(X, Data):
        given = inputs.filled_data(estimator, X, reset=False)
        x, edges = inputs.read_data(given, num_features)
        if torch.equal(x, fitted.x) and torch.equal(edges, fitted.edge_index):
            return fitted.probabilities()  # the very graph that was trained on
    elif estimator.graph is not None:
        return fitted.probabilities()[inputs.check_numbers(X, num_stored)]
    else:
        rows = inputs.validated(estimator, X, reset=False)
        if edge_index is None and fitted.edge_index.numel():
            warnings.warn(
                "rows are new nodes without edges, for none were given with them; "
                "edges among them go into edge_index",
                stacklevel=4,
            )
        rows = inputs.filled(estimator, rows, reset=False)
        x = torch.from_numpy(rows).float()
        edges = inputs.check_edge_index(edge_index, len(rows), estimator.directed)
    return fitted.probabilities(x, edges + num_stored)[num_stored:]


def _read(estimator: Any, X: Any, y: Any, edge_index: Any) -> inputs.Labelled:
    """Nodes in any of the three forms, with what is known of them."""
    if isinstance(X, Data):
        given = inputs.filled_data(estimator, X, reset=True)
        return inputs.read_graph(given, None, None)
    if y is None:
        name = type(estimator).__name__
        raise InputError(f"{name} requires y to be passed, but the target y is None")
    if estimator.graph is not None:
        graph = inputs.as_data(estimator.graph)
        graph = inputs.filled_data(estimator, graph, reset=True)
        numbers = inputs.check_numbers(X, int(graph.num_nodes or 0))
        estimator.n_features_in_ = 1
        known, labels = inputs.known_labels(y, marked=False)
        check_consistent_length(numbers, known)
        inputs.check_targets(estimator, labels)
        return inputs.read_graph(graph, numbers[known], labels)
    marked = isinstance(estimator, ClassifierMixin)
    known, labels = inputs.known_labels(y, marked=marked)
    if known.all():
        rows, labels = inputs.validated(estimator, X, y, reset=True)
    else:
        rows = inputs.validated(estimator, X, reset=True)
        check_consistent_length(rows, known)
    inputs.check_targets(estimator, labels)
    rows = inputs.filled(estimator, rows, reset=True)
    edges = inputs.check_edge_index(edge_index, len(rows), estimator.directed)
    return inputs.read_arrays(rows, labels, known, edges)
