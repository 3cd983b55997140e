"""The method as a scikit-learn estimator."""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch_geometric.data import Data

from ecg_gnn.config import (
    CrossFitModels,
    EmbedConfig,
    EvolveConfig,
    EvolvedLayers,
    FitConfig,
    Gate,
    Knn,
    ModelConfig,
    RunConfig,
    SelfLoops,
    Similarity,
)
from ecg_gnn.data import GraphDataset
from ecg_gnn.inference.classifier import (
    GraphClassifier,
    balanced_weights,
    fit_classifier,
)
from ecg_gnn.inference.estimator_inputs import (
    Labelled,
    as_data,
    check_edge_index,
    check_numbers,
    read_arrays,
    read_data,
    read_graph,
    validated,
)
from ecg_gnn.presets import resolve
from ecg_gnn.system.checks import InputError, check_in_range

Array = NDArray[Any]


class ECGClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Node classification by Evolving Computation Graphs, as scikit-learn has it.

    There are three ways to say what the nodes are:

    - ``fit(data)`` and ``predict(data)`` with a PyG ``Data``. Nodes train where
      ``train_mask`` is set (without one, where ``y >= 0``) and choose where
      ``val_mask`` is; ``predict`` answers for every node of the data it is given.
    - ``ECGClassifier(graph=data).fit(nodes, y)`` with node numbers ``[n]`` or
      ``[n, 1]``: features and edges of the whole graph are seen, classes of the given
      nodes only. This is the form for ``GridSearchCV`` and ``cross_val_score``, which
      then split nodes and leave the graph whole.
    - ``fit(X, y, edge_index=...)`` with a feature matrix ``[n, F]``, a row per node.
      ``predict`` takes rows as *new* nodes: their neighbours in the evolved graph are
      found among the training rows, and edges among them may be given. Without edges
      the evolved graph is all there is.

    A part of the training nodes is set aside to choose the best step and to calibrate
    probabilities, unless the data has a ``val_mask``.

    Args:
        embedding: Weak classifier: mlp, bgrl, mlp+bgrl, features, or none.
        model: Message-passing module of the network.
        k: Neighbours per node in the evolved graph; fewer where there are fewer nodes.
        self_loops: Whether a node is its own neighbour: exclude, within_k, add, only.
        similarity: cosine, dot or euclidean.
        knn: How neighbours are found: auto, exact, ivf or hnsw; those of new nodes are
            always found exactly.
        cross_fit: Folds of cross-fitting the weak classifier; 0 is none.
        cross_fit_models: Which of its models find neighbours for nodes that train none:
            own (that of the node's fold), or all, each a share of k. New nodes always
            have theirs from the first.
        layers: Number of layers.
        hidden: Width.
        dropout: Dropout rate.
        drop_edge: Share of evolved edges dropped in every training step.
        gate: none, or node: every node learns how much it takes of each graph.
        evolved_layers: Which layers read the evolved graph: all, or the last alone.
        steps: Training steps.
        lr: Learning rate.
        label_input: Share of training labels that are input in a step, the others being
            learned; all of them are input where nodes are predicted. 0 is none.
        balance_classes: Weigh rare classes up in training. Probabilities are corrected
            for it, so they are still those of the population.
        validation_fraction: Share of the training nodes that is set aside.
        directed: Whether edges given as ``edge_index`` have one direction only.
        graph: The graph, where ``X`` is node numbers: a PyG ``Data``, or what
            ``load_dataset`` returns.
        random_state: Determines everything random.
        device: auto, cpu or cuda.

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

    def __init__(
        self,
        *,
        embedding: str = "mlp",
        model: str = "gcn",
        k: int = 10,
        self_loops: SelfLoops = "exclude",
        similarity: Similarity = "cosine",
        knn: Knn = "auto",
        cross_fit: int = 0,
        cross_fit_models: CrossFitModels = "own",
        layers: int = 2,
        hidden: int = 64,
        dropout: float = 0.2,
        drop_edge: float = 0.5,
        gate: Gate = "none",
        evolved_layers: EvolvedLayers = "all",
        steps: int = 200,
        lr: float = 3e-3,
        label_input: float = 0.0,
        balance_classes: bool = False,
        validation_fraction: float = 0.2,
        directed: bool = False,
        graph: Data | GraphDataset | None = None,
        random_state: int = 0,
        device: str = "auto",
    ) -> None:
        self.embedding = embedding
        self.model = model
        self.k = k
        self.self_loops = self_loops
        self.similarity = similarity
        self.knn = knn
        self.cross_fit = cross_fit
        self.cross_fit_models = cross_fit_models
        self.layers = layers
        self.hidden = hidden
        self.dropout = dropout
        self.drop_edge = drop_edge
        self.gate = gate
        self.evolved_layers = evolved_layers
        self.steps = steps
        self.lr = lr
        self.label_input = label_input
        self.balance_classes = balance_classes
        self.validation_fraction = validation_fraction
        self.directed = directed
        self.graph = graph
        self.random_state = random_state
        self.device = device

    def fit(
        self,
        X: Any,
        y: Any = None,
        edge_index: Any = None,
    ) -> Self:
        """Embed, evolve and train.

        Args:
            X: A ``Data``, node numbers of ``graph``, or features.
            y: Classes of the rows of ``X``; a ``Data`` brings its own.
            edge_index: Edges ``[2, E]`` among the rows of a feature matrix.
        """
        check_in_range("validation_fraction", self.validation_fraction, 0.01, 0.9)
        labelled = self._read(X, y, edge_index)
        self.classes_ = labelled.classes
        seed = int(self.random_state or 0)
        dataset = labelled.dataset(self.validation_fraction, seed)
        k = min(self.k, dataset.num_nodes - 1)
        config = resolve(self._config(seed, k), dataset)
        weights = None
        if self.balance_classes:
            train = dataset.y[dataset.train_masks[0]]
            weights = balanced_weights(train, dataset.num_classes)
        self.classifier_, result = fit_classifier(
            dataset, dataset.split(0), config, self.embedding, class_weights=weights
        )
        self.best_step_, self.validation_score_ = result.best_step, result.val
        return self

    def predict_proba(
        self,
        X: Any,
        edge_index: Any = None,
    ) -> NDArray[np.float64]:
        """Calibrated probabilities of every class, in the order of ``classes_``.

        Args:
            X: As in ``fit``.
            edge_index: Edges ``[2, E]`` among the rows of a feature matrix.
        """
        check_is_fitted(self, "classifier_")
        fitted: GraphClassifier = self.classifier_
        if isinstance(X, Data):
            if self._is_the_graph(X, fitted):
                return fitted.probabilities()
            x, edges = read_data(X, fitted.x.size(1))
            return self._of_new(fitted, x, edges)
        if self.graph is not None:
            return fitted.probabilities()[check_numbers(X, fitted.x.size(0))]
        rows = validated(self, X, reset=False)
        edges = check_edge_index(edge_index, len(rows), self.directed)
        return self._of_new(fitted, torch.from_numpy(rows).float(), edges)

    def predict(self, X: Any, edge_index: Any = None) -> Array:
        """The most probable class of every row."""
        best = self.predict_proba(X, edge_index).argmax(axis=1)
        found: Array = self.classes_[best]
        return found

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; of a ``Data`` on its test mask, else on all nodes with a class."""
        if not isinstance(X, Data) or y is not None:
            return float(super().score(X, y, sample_weight))
        truth = X.y.cpu().numpy().reshape(-1)
        asked = X.get("test_mask")
        chosen = truth >= 0 if asked is None else asked.cpu().numpy().astype(bool)
        return float((self.predict(X)[chosen] == truth[chosen]).mean())

    def _read(self, X: Any, y: Any, edge_index: Any) -> Labelled:
        if isinstance(X, Data):
            return read_graph(X, None, None)
        if y is None:
            raise InputError(
                "ECGClassifier requires y to be passed, but the target y is None"
            )
        if self.graph is not None:
            check_classification_targets(y)
            graph = as_data(self.graph)
            numbers = check_numbers(X, int(graph.num_nodes or 0))
            self.n_features_in_ = 1
            return read_graph(graph, numbers, np.asarray(y))
        rows, y = validated(self, X, y, reset=True)
        check_classification_targets(y)
        edges = check_edge_index(edge_index, len(rows), self.directed)
        return read_arrays(rows, np.asarray(y), edges)

    def _config(self, seed: int, k: int) -> RunConfig:
        return RunConfig(
            seed=seed,
            splits=(0,),
            device=self.device,
            embed=EmbedConfig(
                names=(self.embedding,),
                cross_fit=self.cross_fit,
                cross_fit_models=self.cross_fit_models,
            ),
            evolve=EvolveConfig(
                k=k,
                self_loops=self.self_loops,
                similarity=self.similarity,
                knn=self.knn,
            ),
            model=ModelConfig(
                name=self.model,
                layers=self.layers,
                hidden=self.hidden,
                dropout=self.dropout,
                drop_edge=self.drop_edge,
                gate=self.gate,
                evolved_layers=self.evolved_layers,
            ),
            train=FitConfig(steps=self.steps, lr=self.lr, label_input=self.label_input),
        )

    @staticmethod
    def _is_the_graph(data: Data, fitted: GraphClassifier) -> bool:
        """Whether these are the very nodes and edges that were trained on."""
        x, edges = read_data(data, fitted.x.size(1))
        return torch.equal(x, fitted.x) and torch.equal(edges, fitted.edge_index)

    @staticmethod
    def _of_new(
        fitted: GraphClassifier, x: Tensor, edges: Tensor
    ) -> NDArray[np.float64]:
        num_stored = fitted.x.size(0)
        return fitted.probabilities(x, edges + num_stored)[num_stored:]
