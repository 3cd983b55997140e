"""The method as scikit-learn estimators."""

from inspect import Parameter, Signature
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from torch_geometric.data import Data

from ecg_gnn.config.run_config import kept_options
from ecg_gnn.data import GraphDataset
from ecg_gnn.ensemble.tournament import search
from ecg_gnn.inference.classifier import fit_classifier
from ecg_gnn.inference.estimator_inputs import Array, Labelled, NodeEstimator
from ecg_gnn.inference.fitting import class_weights, fit_settings
from ecg_gnn.pipeline.classification import with_batches_if_large
from ecg_gnn.pipeline.resolve import pick_device
from ecg_gnn.system.checks import (
    InputError,
    check_choice,
    check_in_range,
    default_metric,
    parse_budget,
)
from ecg_gnn.system.machine import holding
from ecg_gnn.system.seeds import derive_seed

_SETTINGS = {option: None for option in kept_options() if option != "seed"}
"""Settings of a saved model; None: follows from the graph."""
_PARAMETERS: dict[str, Any] = _SETTINGS | {
    "balance_classes": False,
    "validation_fraction": 0.2,
    "directed": False,
    "graph": None,
    "random_state": 0,
}
_BY_NAME = Parameter.KEYWORD_ONLY


class ECGClassifier(ClassifierMixin, NodeEstimator):  # type: ignore[misc]  # no types
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
                no class, nor is -1 beside two others.
            edge_index: Edges ``[2, E]`` among the rows of a feature matrix.
            budget: Seconds, or a text such as ``"10m"``, for the search that
                ``ecg-gnn fit`` makes; other settings are then not read.
        """
        check_in_range("validation_fraction", self.validation_fraction, 0.01, 0.9)
        labelled = self._read(X, y, edge_index)
        if len(labelled.classes) < 2:
            raise InputError(
                "'y' must have at least 2 classes: a classifier cannot learn one class "
                f"(got {labelled.classes.tolist()})"
            )
        self.classes_ = labelled.classes
        if budget is not None:
            _search(self, labelled, labelled.codes, len(self.classes_), budget)
            self.best_step_ = None
            return self
        seed = int(self.random_state or 0)
        dataset = _dataset(labelled, self.validation_fraction, seed)
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
        return self._predict(X, edge_index)

    def predict(self, X: Any, edge_index: Any = None) -> Array:
        """The class of every row.

        It is the most probable class, or the one with the highest probability times the
        metric's multiplier.
        """
        shares = self.predict_proba(X, edge_index)
        best = (shares * self.classifier_.multipliers).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; of a ``Data`` on its test mask, else on all nodes with a class."""
        if not isinstance(X, Data) or y is not None:
            return float(super().score(X, y, sample_weight))
        truth = X.y.cpu().numpy().reshape(-1)
        asked = X.get("test_mask")
        chosen = truth >= 0 if asked is None else asked.cpu().numpy().astype(bool)
        return float((self.predict(X)[chosen] == truth[chosen]).mean())


def _dataset(labelled: Labelled, fraction: float, seed: int) -> GraphDataset:
    """A dataset with one split, whose test part is empty."""
    codes, val = labelled.codes, labelled.val_mask
    if val is None:  # a share of every class; at least one node of each trains
        rng = np.random.default_rng(derive_seed(seed, "validation"))
        val = np.zeros(len(codes), dtype=bool)
        for code in range(codes.max() + 1):
            nodes = rng.permutation(np.flatnonzero(codes == code))
            val[nodes[: min(round(fraction * len(nodes)), len(nodes) - 1)]] = True
    train, val = (codes >= 0) & ~val, (codes >= 0) & val
    if not val.any():  # too few nodes to spare any
        val = train
    metric = default_metric(len(labelled.classes))
    if metric == "roc_auc" and len(np.unique(codes[val])) < 2:
        metric = "accuracy"
    return GraphDataset(
        name="data",
        x=labelled.x,
        y=torch.from_numpy(codes),
        edge_index=labelled.edge_index,
        num_classes=len(labelled.classes),
        metric=metric,
        train_masks=torch.from_numpy(train[None]),
        val_masks=torch.from_numpy(val[None]),
        test_masks=torch.zeros(1, len(train), dtype=torch.bool),
        directed=True,  # edges are as they are to be read
        sha256="",
    )


class ECGRegressor(RegressorMixin, NodeEstimator):  # type: ignore[misc]  # no types
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
        labelled = self._read(X, y, edge_index)
        budget = self.budget if budget is None else budget
        _search(self, labelled, labelled.numbers(), 0, budget)
        return self

    def predict(self, X: Any, edge_index: Any = None) -> Array:
        """The number of every row."""
        return np.asarray(self._predict(X, edge_index)[:, 0])


def _search(
    estimator: Any, labelled: Labelled, values: Array, num_classes: int, budget: Any
) -> None:
    """Fit an estimator by a search."""
    found = search(
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
    estimator.classifier_ = found.ensemble
    estimator.validation_score_, _ = found.score()
